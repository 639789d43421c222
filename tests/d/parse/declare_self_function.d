self int f(int); /* error: D_DECL_BADCLASS */
