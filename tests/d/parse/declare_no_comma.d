int x y; /* error: D_SYNTAX */
