BEGIN {
	x = .5; /* error: D_SYNTAX */
}
