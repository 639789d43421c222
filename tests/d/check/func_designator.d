BEGIN
{
	(1 + 2)(3);	/* error: D_FUNC_IDENT */
}
