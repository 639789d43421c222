struct a`b *x; /* error: D_DECL_SCOPE */
