long short x; /* error: D_DECL_COMBO */
