BEGIN
{
	n++;
	++m;
	self->k--;
	trace(n + m + self->k);
}
