BEGIN
{
	trace(pid && tid || !uid ^^ gid);
}
