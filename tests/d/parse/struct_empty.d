struct s { }; /* error: D_SYNTAX */
