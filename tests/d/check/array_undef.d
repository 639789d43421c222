BEGIN
{
	trace(a[1]);	/* error: D_VAR_UNDEF */
}
