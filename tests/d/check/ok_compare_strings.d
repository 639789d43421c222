BEGIN
{
	x = execname == "python";
	y = execname < "x";
	z = execname != NULL;
	trace(x + y + z);
}
