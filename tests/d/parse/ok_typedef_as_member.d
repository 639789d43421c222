typedef int foo;
struct s { foo foo; };
