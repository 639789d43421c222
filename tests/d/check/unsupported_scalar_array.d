int a[10];	/* error: D_UNKNOWN */
BEGIN { }
