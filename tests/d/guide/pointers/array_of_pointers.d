/* Pointers as elements and as keys. */
BEGIN
{
	a[(void *)0x10] = (char *)0x20;
	printf("%p %d", a[(void *)0x10], a[(void *)0x11] == NULL);
	exit(0);
}
/* @@output
20 1
*/
