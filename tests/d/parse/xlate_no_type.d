BEGIN {
	x = xlate(arg0); /* error: D_SYNTAX */
}
