/* Names for constants and expressions. */
enum color { RED, GREEN = 5, BLUE };
inline int limit = 10;
BEGIN { printf("%d %d %d %d\n", RED, GREEN, BLUE, limit + 1); exit(0); }
/* @@output
0 5 6 11
*/
