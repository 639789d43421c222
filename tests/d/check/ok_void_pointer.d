struct s { int a; };
BEGIN
{
	p = copyin(arg0, 4);
	s = (struct s *)p;
	trace(s->a);
	trace(p == s);
	trace(p == NULL);
}
