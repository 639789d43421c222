BEGIN {
	self->a`b = 1; /* error: D_SYNTAX */
}
