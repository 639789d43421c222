BEGIN {
	x = offsetof(nosuch_t, a); /* error: D_SYNTAX */
}
