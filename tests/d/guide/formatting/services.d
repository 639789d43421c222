/* %P names the service at a port. */
BEGIN
{
	printf("%P %P %6P|", 80, 443, 22);
	exit(0);
}
/* @@output
http https    ssh|
*/
