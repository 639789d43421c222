BEGIN {
	x = p->; /* error: D_SYNTAX */
}
