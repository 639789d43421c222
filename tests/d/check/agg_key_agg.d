BEGIN
{
	@a = count();
	@b[@a] = count();	/* error: D_KEY_TYPE */
}
