inline int x; /* error: D_SYNTAX */
