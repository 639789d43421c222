struct nosuch x; /* error: D_DECL_INCOMPLETE */
