BEGIN
{
	printf();	/* error: D_PROTO_LEN */
}
