struct s {
	nosuch_t a; /* error: D_SYNTAX */
};
