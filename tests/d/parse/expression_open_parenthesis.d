BEGIN {
	x = (1; /* error: D_SYNTAX */
}
