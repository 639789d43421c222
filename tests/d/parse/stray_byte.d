BEGIN {
	x = €; /* error: D_SYNTAX */
}
