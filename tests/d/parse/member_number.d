BEGIN {
	x = p->1; /* error: D_SYNTAX */
}
