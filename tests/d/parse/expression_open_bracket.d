BEGIN {
	x = a[1; /* error: D_SYNTAX */
}
