BEGIN
{
	normalize(@nosuch, 2);	/* error: D_NORMALIZE_AGGBAD */
}
