BEGIN {
	x = $1; /* error: D_MACRO_UNDEF */
	y = $$2; /* error: D_MACRO_UNDEF */
	z = $nosuch; /* error: D_MACRO_UNDEF */
}
