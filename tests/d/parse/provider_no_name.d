provider { }; /* error: D_SYNTAX */
