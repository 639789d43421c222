int f(int, nosuch_t); /* error: D_SYNTAX */
