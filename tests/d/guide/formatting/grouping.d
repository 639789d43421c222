/* The flag ' groups thousands where the locale says so: in C's it says nothing.
   @@options: -q */
BEGIN
{
	printf("%'d", 1234567);
	exit(0);
}
/* @@output
1234567
*/
