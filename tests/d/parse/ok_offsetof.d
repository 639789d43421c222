struct s { int a; long b; };
BEGIN { trace(offsetof(struct s, b)); }
