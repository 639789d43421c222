BEGIN
{
	system("ls");	/* error: D_UNKNOWN */
}
