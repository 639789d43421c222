BEGIN
{
	printa();	/* error: D_PROTO_LEN */
}
