int a[string];
BEGIN
{
	a[1] = 2;	/* error: D_PROTO_ARG */
}
