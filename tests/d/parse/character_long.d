BEGIN {
	x = 'abcdefghi'; /* error: D_CHR_OFLOW */
}
