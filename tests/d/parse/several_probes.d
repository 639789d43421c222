provider p {
	probe a b; /* error: D_SYNTAX */
	probe c(int);
	probe d(; /* error: D_SYNTAX */
};
