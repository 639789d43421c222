BEGIN
{
	@a = count();
}

END
{
	printa(@a);
	trunc(@a, 1);
}
