BEGIN
{
	trace(sizeof (void));	/* error: D_SIZEOF_TYPE */
}
