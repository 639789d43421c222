int x[]; /* error: D_DECL_ARRNULL */
