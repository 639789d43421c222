extern int a;
extern struct unknown b;
extern char c[];
