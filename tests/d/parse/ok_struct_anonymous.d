struct s { int a; union { int b; struct { int c, d; }; }; };
BEGIN { trace(offsetof(struct s, d)); }
