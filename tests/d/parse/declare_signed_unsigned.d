signed unsigned x; /* error: D_UNKNOWN */
