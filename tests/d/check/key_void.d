BEGIN
{
	a[printf("x")] = 1;	/* error: D_KEY_TYPE */
}
