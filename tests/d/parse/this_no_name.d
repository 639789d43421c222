BEGIN {
	this-> = 1; /* error: D_SYNTAX */
}
