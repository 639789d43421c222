this int x[int]; /* error: D_DECL_LOCASSC */
