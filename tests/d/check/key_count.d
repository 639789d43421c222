BEGIN
{
	a[1] = 1;
	a[1, 2] = 1;	/* error: D_PROTO_LEN */
}
