BEGIN
{
	x[1] = 1;
	trace(x);	/* error: D_IDENT_BADREF */
}
