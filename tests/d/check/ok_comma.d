BEGIN
{
	trace((1, 2));
	x = 1, y = 2;
}
