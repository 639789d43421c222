int pid;	/* error: D_DECL_IDRED */
BEGIN { }
