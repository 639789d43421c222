BEGIN
{
	trace(&pid);	/* error: D_ADDROF_VAR */
}
