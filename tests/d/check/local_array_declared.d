this int a[int];	/* error: D_DECL_LOCASSC */
BEGIN { }
