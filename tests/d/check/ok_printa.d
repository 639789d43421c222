BEGIN
{
	@a[execname, 1] = count();
	@b[execname, 2] = sum(arg0);
	printa(@a);
	printa(@a, @b);
	printa("%s %d %@d\n", @a);
	printa("%s %d %@d %@d\n", @a, @b);
	printa("total\n", @a);
	clear(@a);
	trunc(@a);
	trunc(@a, 5);
	normalize(@b, 1000);
	denormalize(@b);
}
