enum e { }; /* error: D_SYNTAX */
