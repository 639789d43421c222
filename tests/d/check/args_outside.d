inline int A = args[0];	/* error: D_ARGS_NONE */
BEGIN { }
