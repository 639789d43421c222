BEGIN {
	x = self.x; /* error: D_SYNTAX */
}
