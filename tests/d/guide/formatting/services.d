/* %P prints the number of a port at which there is no service. */
BEGIN
{
	printf("%P %6P|", 60999, 61001);
	exit(0);
}
/* @@output
60999  61001|
*/
