BEGIN {
	x = 1 * / 2; /* error: D_SYNTAX */
}
