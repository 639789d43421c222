/* x, self->x, this->x and @x are four variables. */
BEGIN
{
	x = 1;
	self->x = 2;
	this->x = 3;
	@x = sum(4);
	printf("%d %d %d", x, self->x, this->x);
	printa(" %@d", @x);
	exit(0);
}
/* @@output
1 2 3 4
*/
