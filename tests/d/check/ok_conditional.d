BEGIN
{
	trace(pid > 1 ? "big" : execname);
	trace(pid ? 1 : timestamp);
	trace(pid ? (int *)arg0 : NULL);
}
