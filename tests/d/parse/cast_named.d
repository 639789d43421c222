BEGIN {
	x = (int y)arg0; /* error: D_SYNTAX */
}
