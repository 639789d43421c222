BEGIN
{
	trace(stringof(printf("x")));	/* error: D_STRINGOF_TYPE */
}
