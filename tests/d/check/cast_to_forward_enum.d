BEGIN
{
	x = (enum nosuch)arg0;	/* error: D_DECL_INCOMPLETE */
}
