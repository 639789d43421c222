inline nosuch_t x = 1; /* error: D_SYNTAX */
