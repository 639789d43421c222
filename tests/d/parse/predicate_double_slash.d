BEGIN // { }
trace(1); /* error: D_SYNTAX */
