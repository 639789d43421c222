BEGIN
{
	trace("x" ^^ 1);	/* error: D_OP_SCALAR */
}
