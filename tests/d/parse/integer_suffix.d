BEGIN {
	x = 1lul; /* error: D_INT_DIGIT */
}
