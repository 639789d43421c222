BEGIN
{
	trace(strlen);	/* error: D_IDENT_BADREF */
}
