BEGIN
{
	trace(args[0]);	/* error: D_ARGS_IDX */
}
