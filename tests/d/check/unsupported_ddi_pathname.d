BEGIN
{
	trace(ddi_pathname(0, 0));	/* error: D_UNKNOWN */
}
