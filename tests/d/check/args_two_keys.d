python123:::function-entry
{
	trace(args[0, 1]);	/* error: D_PROTO_LEN */
}
