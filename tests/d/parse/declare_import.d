import x; /* error: D_SYNTAX */
