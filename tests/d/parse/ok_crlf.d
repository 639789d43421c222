BEGIN
{
	trace(1);
}
