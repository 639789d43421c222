BEGIN
{
	self->a[1] = 1;
	self->a["x"] = 1;	/* error: D_PROTO_ARG */
}
