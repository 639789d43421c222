BEGIN
{
	clear(1);	/* error: D_CLEAR_AGGARG */
}
