int count_of;
BEGIN
{
	count_of = "three";	/* error: D_OP_INCOMPAT */
}
