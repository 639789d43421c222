BEGIN {
	x = ; /* error: D_SYNTAX */
	y = 1;
	z = 1 +; /* error: D_SYNTAX */
}
