/* Thread-local associative arrays. */
BEGIN
{
	self->x[123, 'a'] = 10;
	self->x[124, 'a']++;
	self->t["k"] = "v";
	printf("%d %d %d %s", self->x[123, 'a'], self->x[124, 'a'], self->x[123, 'b'], self->t["k"]);
	exit(0);
}
/* @@output
10 1 0 v
*/
