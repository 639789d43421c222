/* A self-> variable is zero, or NULL, before it is assigned and after zero was. */
self int x;
self string s;
BEGIN
{
	printf("%d ", self->x);
	self->x = 5;
	self->s = "abc";
	printf("%d %s ", self->x, self->s);
	self->x = 0;
	self->s = 0;
	printf("%d %d", self->x, self->s == NULL);
	exit(0);
}
/* @@output
0 5 abc 0 1
*/
