python123:::function-entry
{
	trace(args[pid]);	/* error: D_PROTO_ARG */
}
