BEGIN
{
	a[1, (char)2, "x"] = 1;
	trace(a[timestamp, pid, execname]);
}
