BEGIN {
	x = sizeof; /* error: D_SYNTAX */
}
