/* They work on elements and on self-> and this-> variables, too. */
BEGIN
{
	a["x"]++;
	a["x"]++;
	self->n = 9;
	self->n--;
	this->m = 3;
	++this->m;
	printf("%d %d %d", a["x"], self->n, this->m);
	exit(0);
}
/* @@output
2 8 4
*/
