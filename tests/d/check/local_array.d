BEGIN
{
	this->a[1] = 1;	/* error: D_ARR_LOCAL */
}
