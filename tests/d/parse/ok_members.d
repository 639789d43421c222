struct s { struct s *next; int a; };
struct s *p;
BEGIN { trace(p->next->a); trace((*p).a); trace(p->next->next == p); }
