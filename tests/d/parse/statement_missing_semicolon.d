BEGIN {
	x = 1
	y = 2; /* error: D_SYNTAX */
}
