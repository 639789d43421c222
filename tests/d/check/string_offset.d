string s;
BEGIN
{
	trace(s + 1);
	trace(1 + s);
	trace(*(s + 1));
	trace((s + pid)[0]);
	trace(s - 1);		/* error: D_OP_INCOMPAT */
	trace(s + s);		/* error: D_OP_INCOMPAT */
	s += 1;			/* error: D_OP_INCOMPAT */
	*(s + 1) = 'x';		/* error: D_OP_LVAL */
}
