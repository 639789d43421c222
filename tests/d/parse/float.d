BEGIN {
	x = 1.5; /* error: D_SYNTAX */
}
