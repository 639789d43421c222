BEGIN
{
	printa("%@d");	/* error: D_PRINTA_PROTO */
}
