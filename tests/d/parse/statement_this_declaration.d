BEGIN {
	this int x; /* error: D_SYNTAX */
}
