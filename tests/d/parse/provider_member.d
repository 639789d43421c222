provider p {
	int x; /* error: D_SYNTAX */
};
