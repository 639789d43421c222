int a[int];
int a[string];	/* error: D_DECL_IDRED */
BEGIN { }
