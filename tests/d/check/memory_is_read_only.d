struct point { int x, y; };
BEGIN
{
	((struct point *)alloca(8))->x = 1;	/* error: D_OP_WRITE */
	((struct point *)alloca(8))->y++;	/* error: D_OP_WRITE */
	*(int *)alloca(8) = 1;			/* error: D_OP_WRITE */
	((int *)alloca(8))[0] += 1;		/* error: D_OP_WRITE */
}
