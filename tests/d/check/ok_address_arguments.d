BEGIN
{
	trace(copyinstr((uintptr_t)arg0));
	trace(copyinstr((char *)arg0));
	trace(*(char *)copyin((void *)arg0, 1));
}
