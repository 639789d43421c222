BEGIN
{
	trace('a' + 0x10 + 010 + 1L + 2UL + 3LL + 4U);
	trace(18446744073709551615);
	trace(0x7fffffffffffffff);
}
