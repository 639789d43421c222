BEGIN {
	int x; /* error: D_SYNTAX */
}
