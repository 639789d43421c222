BEGIN {
	switch (1) { } /* error: D_SYNTAX */
}
