/* this-> variables live through all clauses of one firing of a probe. */
this int x;
BEGIN
{
	this->x = 5;
	this->s = "clause";
}
BEGIN
{
	printf("%d %s ", this->x, this->s);
	this->x++;
}
BEGIN
{
	printf("%d", this->x);
	exit(0);
}
/* @@output
5 clause 6
*/
