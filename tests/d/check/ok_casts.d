BEGIN
{
	trace((char)300);
	trace((uint8_t)-1);
	trace((int *)arg0);
	trace((uint64_t)(void *)arg0);
	trace((string)copyin(arg0, 8));
}
