BEGIN
{
	n += 1;	/* error: D_VAR_UNDEF */
}
