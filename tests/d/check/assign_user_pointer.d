python123:::function-entry
{
	this->k = (char *)arg0;
	this->k = args[0];	/* error: D_OP_INCOMPAT */
}
