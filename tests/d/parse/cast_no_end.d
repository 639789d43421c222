BEGIN {
	x = (int arg0; /* error: D_SYNTAX */
}
