/* A cast of an address makes a pointer; nothing is read before it is dereferenced. */
BEGIN
{
	this->p = (int *)0x7fff0000;
	printf("%p %d", this->p + 2, sizeof (*this->p));
	exit(0);
}
/* @@output
7fff0008 4
*/
