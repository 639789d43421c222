BEGIN
{
	trunc(1);	/* error: D_TRUNC_AGGARG */
}
