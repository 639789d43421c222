python123:::
{
	trace(args[0]);	/* error: D_ARGS_MULTI */
}
