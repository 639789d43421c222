BEGIN
{
	trace(self->nosuch);	/* error: D_VAR_UNDEF */
}
