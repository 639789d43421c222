BEGIN {
	goto end; /* error: D_SYNTAX */
}
