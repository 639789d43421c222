/* sizeof an expression is the size of its type; the expression is not evaluated. */
struct s { char name[10]; int n; };
int i;
BEGIN
{
	printf("%d %d %d ", sizeof (((struct s *)0)->name), sizeof (((struct s *)0)->n), sizeof (1 + 'a'));
	this->x = sizeof (i++);
	printf("%d", i);
	exit(0);
}
/* @@output
10 4 4 0
*/
