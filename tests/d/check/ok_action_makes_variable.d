BEGIN
/n == 0/
{
	trace(n++);
}
