BEGIN {
	x = xlate <nosuch_t>(arg0); /* error: D_SYNTAX */
}
