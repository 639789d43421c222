BEGIN
{
	x = y = 3;
	trace(x + y);
}
