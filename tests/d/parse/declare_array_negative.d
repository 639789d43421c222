int x[-1]; /* error: D_DECL_ARRSUB */
