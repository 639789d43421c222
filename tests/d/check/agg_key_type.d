BEGIN
{
	@a["x"] = count();
	@a[1] = count();	/* error: D_PROTO_ARG */
}
