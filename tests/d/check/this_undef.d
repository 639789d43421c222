BEGIN
{
	trace(this->nosuch);	/* error: D_VAR_UNDEF */
}
