struct s { int a; };
union s { int b; char c; };
enum s { E };
union s *x;
BEGIN { trace(sizeof (struct s) + sizeof (union s) + sizeof (enum s)); }
