int a, b;
string s;
self int depth;
this uint64_t t;
int m[string, int];
self string names[int];
BEGIN
{
	a = b;
	self->depth++;
	this->t = timestamp;
	m["x", 1] = 2;
	self->names[1] = s;
}
