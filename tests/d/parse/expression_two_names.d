BEGIN {
	x = a b; /* error: D_SYNTAX */
}
