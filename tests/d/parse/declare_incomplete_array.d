struct nosuch x[3]; /* error: D_DECL_INCOMPLETE */
