int x[3](int); /* error: D_DECL_COMBO */
