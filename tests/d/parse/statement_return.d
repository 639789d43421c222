BEGIN {
	return 1; /* error: D_SYNTAX */
}
