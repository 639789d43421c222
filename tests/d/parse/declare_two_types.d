int char x; /* error: D_DECL_COMBO */
