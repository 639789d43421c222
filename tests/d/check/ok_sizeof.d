BEGIN
{
	x = 1;
	trace(sizeof (x) + sizeof (int *) + sizeof (string) + sizeof ("abc"));
}
