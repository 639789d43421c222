/* What a variable or a cast points to may be written. */
struct point { int x, y; char name[4]; };
inline struct point *fixed = (struct point *)arg0;
BEGIN
{
	*(int *)0 = 1;
	this->p = (struct point *)alloca(sizeof (struct point));
	this->p->x = 1;
	(this->p + 1)->y++;
	(*(arg0 ? this->p : this->p)).x = 1;
	this->p->name[1] |= 2;
	*&this->p->x = 1;
	fixed->x = 1;			/* error: D_OP_WRITE */
	this->p->name = "ab";		/* error: D_OP_ARRFUN */
	*(void *)arg0 = 1;		/* error: D_DEREF_VOID */
	this->p->x = "text";		/* error: D_OP_INCOMPAT */
}
