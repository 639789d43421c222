BEGIN {
	x = 089; /* error: D_INT_DIGIT */
}
