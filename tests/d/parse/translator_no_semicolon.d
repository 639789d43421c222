struct s { int a; };
translator struct s < int x > { a = 1; }
BEGIN { } /* error: D_SYNTAX */
