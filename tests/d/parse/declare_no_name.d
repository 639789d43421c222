int *; /* error: D_SYNTAX */
