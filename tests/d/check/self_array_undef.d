BEGIN
{
	trace(self->a[1]);	/* error: D_VAR_UNDEF */
}
