/* Comparisons follow the promoted types: signed, or unsigned when one side is unsigned of that size. */
BEGIN
{
	i = -1;
	u = (unsigned int)1;
	l = (long)-1;
	c = (unsigned char)255;
	printf("%d %d %d %d\n", i < 1, i < u, l < u, c < i);
	exit(0);
}
/* @@output
1 0 1 0
*/
