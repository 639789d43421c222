int x[4294967296]; /* error: D_DECL_ARRBIG */
