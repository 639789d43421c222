BEGIN
{
	a[(int *)arg0] = 1;
	trace(a[(int *)arg1]);
}
