BEGIN
{
	clear();	/* error: D_PROTO_LEN */
}
