BEGIN
/n++/
{
	trace(n);
}
