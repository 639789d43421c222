BEGIN
{
	a["x"] = 1;
	a[1] = 1;	/* error: D_PROTO_ARG */
}
