/* alloca() gives scratch memory. */
BEGIN
{
	this->p = (int *)alloca(8);
	printf("%d", this->p != NULL);
	exit(0);
}
/* @@output
1
*/
