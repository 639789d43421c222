BEGIN
/$target == 0 || pid == $target/
{
	trace($target);
}
