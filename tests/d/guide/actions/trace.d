/* "trace": the statements of the example whose values are known beforehand. */
BEGIN
{
	trace("somehow managed to get here");
	exit(0);
}
/* @@output
somehow managed to get here
*/
