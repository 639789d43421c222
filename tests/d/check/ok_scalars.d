BEGIN
{
	x = 1;
	y = x + 2;
	z = "text";
	self->a = timestamp;
	this->b = self->a;
	trace(this->b - y);
}
