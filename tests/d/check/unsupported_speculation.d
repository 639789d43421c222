BEGIN
{
	self->spec = speculation();	/* error: D_UNKNOWN */
}
