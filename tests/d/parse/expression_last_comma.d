BEGIN {
	printf("", 1,); /* error: D_SYNTAX */
}
