BEGIN
{
	normalize(1, 2);	/* error: D_NORMALIZE_AGGARG */
}
