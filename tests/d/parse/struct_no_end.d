struct s { int a;
/* error: D_SYNTAX */