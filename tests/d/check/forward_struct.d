struct hidden;
BEGIN
{
	trace(((struct hidden *)arg0)->z);	/* error: D_OP_INCOMPLETE */
}
