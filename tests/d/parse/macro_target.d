BEGIN {
	trace($target); /* error: D_MACRO_UNDEF */
}
