inline int N = N + 1;	/* error: D_IDENT_UNDEF */
BEGIN { }
