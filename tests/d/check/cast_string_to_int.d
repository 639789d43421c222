BEGIN
{
	trace((int)"12");	/* error: D_CAST_INVAL */
}
