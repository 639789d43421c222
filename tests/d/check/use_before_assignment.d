BEGIN
/self->traced/	/* error: D_VAR_UNDEF */
{
}

END
{
	self->traced = 1;
}
