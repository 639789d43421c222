BEGIN
{
	trace(uregs[pid]);	/* error: D_PROTO_ARG */
}

BEGIN
{
	trace(uregs);	/* error: D_IDENT_BADREF */
}
