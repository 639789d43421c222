register int x; /* error: D_DECL_BADCLASS */
