/* Declared ones have the types that the declaration says. */
self char n[string];
BEGIN
{
	self->n["a"] = 257;
	printf("%d", self->n["a"]);
	exit(0);
}
/* @@output
1
*/
