int f(int,); /* error: D_SYNTAX */
