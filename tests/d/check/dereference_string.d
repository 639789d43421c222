BEGIN
{
	trace(*execname);
	*execname = 1;		/* error: D_OP_LVAL */
	trace(execname["x"]);	/* error: D_OP_INCOMPAT */
}
