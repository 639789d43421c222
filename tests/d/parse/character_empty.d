BEGIN {
	x = ''; /* error: D_CHR_NULL */
}
