BEGIN
{
	trace(uregs[3]);	/* error: D_PROTO_ARG */
}

BEGIN
{
	trace(uregs);	/* error: D_IDENT_BADREF */
}
