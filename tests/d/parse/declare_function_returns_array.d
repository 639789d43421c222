int x(int)[3]; /* error: D_DECL_COMBO */
