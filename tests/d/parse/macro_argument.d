BEGIN {
	trace($1); /* error: D_MACRO_UNDEF */
}
