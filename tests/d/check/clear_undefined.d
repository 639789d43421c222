BEGIN
{
	clear(@nosuch);	/* error: D_CLEAR_AGGBAD */
}
