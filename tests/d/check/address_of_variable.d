BEGIN
{
	x = 1;
	trace(&x);	/* error: D_ADDROF_VAR */
}
