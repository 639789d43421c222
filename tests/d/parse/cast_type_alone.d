BEGIN {
	x = (int); /* error: D_SYNTAX */
}
