BEGIN
{
	trace(*(int *)copyin(arg0, 4));
	trace(((int *)copyin(arg0, 8))[1]);
	trace(*((char *)copyin(arg0, 8) + 3));
}
