BEGIN
{
	this->p = (char *)arg0;
	this->p = "x";	/* error: D_OP_INCOMPAT */
}
