BEGIN {
	x = a[]; /* error: D_SYNTAX */
}
