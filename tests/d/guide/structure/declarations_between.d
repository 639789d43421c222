/* Declarations can stand between clauses. */
int a;
BEGIN { a = 1; }
string b;
BEGIN { b = "two"; }
inline int c = 3;
BEGIN { printf("%d %s %d", a, b, c); exit(0); }
/* @@output
1 two 3
*/
