struct s {
	self int a; /* error: D_SYNTAX */
};
