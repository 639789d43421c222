provider p {
	probe x; /* error: D_SYNTAX */
};
