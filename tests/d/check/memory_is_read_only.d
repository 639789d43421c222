/* The traced process's memory is. */
struct point { int x, y; };
userland struct point *theirs;
BEGIN
{
	theirs->x = 1;			/* error: D_OP_WRITE */
	theirs[1].y++;			/* error: D_OP_WRITE */
	*(userland int *)arg0 += 1;	/* error: D_OP_WRITE */
	this->p = theirs;
	this->p->x = 1;			/* error: D_OP_WRITE */
	*theirs = *(struct point *)arg0;	/* error: D_OP_WRITE */
}
