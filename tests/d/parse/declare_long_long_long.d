long long long x; /* error: D_DECL_COMBO */
