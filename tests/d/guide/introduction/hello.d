/* The first program: a greeting and the end. */
BEGIN
{
	trace("hello, world");
	exit(0);
}
/* @@output
hello, world
*/
