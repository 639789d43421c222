BEGIN {
	x = offsetof(int); /* error: D_SYNTAX */
}
