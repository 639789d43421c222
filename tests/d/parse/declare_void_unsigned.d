unsigned void *x; /* error: D_DECL_VOIDATTR */
