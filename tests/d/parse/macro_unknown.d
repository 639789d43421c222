BEGIN {
	trace($nosuch); /* error: D_MACRO_UNDEF */
}
