enum color { RED, BLUE };
int RED;			/* error: D_DECL_IDRED */
string BLUE[int];		/* error: D_DECL_IDRED */
self int RED;
BEGIN
{
	self->RED = RED;
}
