BEGIN {
	self->f(2); /* error: D_FUNC_IDENT */
}
