BEGIN {
	/* error: D_STR_NL */ trace("a
); }
