BEGIN
{
	s = execname;
	self->s = copyinstr(arg0);
	s = 0;
	self->s = NULL;
}
