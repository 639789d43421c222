int x[0]; /* error: D_DECL_ARRSUB */
