struct s { int a; };
translator struct s < int > { }; /* error: D_SYNTAX */
