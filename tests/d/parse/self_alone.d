BEGIN {
	x = self; /* error: D_SYNTAX */
}
