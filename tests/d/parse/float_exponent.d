BEGIN {
	x = 1.0e+10; /* error: D_SYNTAX */
}
