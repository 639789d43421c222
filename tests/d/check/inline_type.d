inline int N = "x";	/* error: D_OP_INCOMPAT */
BEGIN { }
