signed unsigned x; /* error: D_DECL_COMBO */
