long long long x; /* error: D_UNKNOWN */
