BEGIN / 1 + / /* error: D_SYNTAX */
{
	x = ]; /* error: D_SYNTAX */
}
