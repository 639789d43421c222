BEGIN
{
	trace(&1);	/* error: D_ADDROF_LVAL */
}
