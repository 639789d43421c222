BEGIN {
	x = 12abc; /* error: D_INT_DIGIT */
}
