self this int x; /* error: D_DECL_CLASS */
