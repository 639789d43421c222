BEGIN {
	if 1 trace(1); /* error: D_SYNTAX */
}
