BEGIN {
	default; /* error: D_SYNTAX */
}
