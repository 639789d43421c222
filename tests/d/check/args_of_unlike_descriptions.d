python123:::function-entry,
python123:::gc-start
{
	trace(args[0]);	/* error: D_ARGS_MULTI */
}
