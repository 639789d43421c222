BEGIN {
	x = 0x; /* error: D_INT_DIGIT */
}
