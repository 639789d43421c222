typedef int; /* error: D_DECL_USELESS */
