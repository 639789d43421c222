BEGIN {
	trace($$2); /* error: D_MACRO_UNDEF */
}
