int x
int y; /* error: D_SYNTAX */
