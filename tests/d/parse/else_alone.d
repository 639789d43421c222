BEGIN {
	else trace(1); /* error: D_SYNTAX */
}
