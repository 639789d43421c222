/* What a pointer to scratch memory points to is assigned as a variable is. */
struct s { int a; char text[4]; };
BEGIN
{
	x = (int *)alloca(sizeof (int));
	*x = 3;
	*x += 4;
	this->s = (struct s *)alloca(sizeof (struct s));
	this->s->a = (*x)++;
	this->s->text[0] = 'o';
	((char *)this->s->text)[1] = 'k';
	printf("%d %d %s", *x, this->s->a, stringof(this->s->text));
	exit(0);
}
/* @@output
8 7 ok
*/
