BEGIN
{
	printa(@nosuch);	/* error: D_PRINTA_AGGBAD */
}
