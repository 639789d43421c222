BEGIN {
	trace(1) trace(2); /* error: D_SYNTAX */
}
