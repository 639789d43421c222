BEGIN
{
	printa(1);	/* error: D_PRINTA_AGGARG */
}
