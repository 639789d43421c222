BEGIN
{
	trunc(@nosuch);	/* error: D_TRUNC_AGGBAD */
}
