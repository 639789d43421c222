nosuch_t x; /* error: D_SYNTAX */
