python123:::function-entry
{
	trace(args[7]);	/* error: D_ARGS_IDX */
}
