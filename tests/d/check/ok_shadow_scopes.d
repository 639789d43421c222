BEGIN
{
	x = 1;
	self->x = "a";
	this->x = timestamp;
	@x = count();
	printf("%d %s %d", x, self->x, this->x);
}
