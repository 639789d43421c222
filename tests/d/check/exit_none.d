BEGIN
{
	exit();	/* error: D_PROTO_LEN */
}
