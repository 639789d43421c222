BEGIN
{
	clear();	/* error: D_CLEAR_PROTO */
}
