/* A fault in a branch or in a condition tells the number of its action, and ends the clause. */
int zero;
BEGIN
{
	n = 1;
	if (n) {
		printf("before\n");
		if (n == 2)
			trace(1);
		else
			n = 5 / zero;
		printf("never\n");
	}
	printf("never\n");
}
BEGIN { printf("%d\n", n); if (7 % zero) printf("never\n"); else printf("never\n"); printf("never\n"); }
BEGIN { exit(0); }
ERROR { printf("action %d, fault %d\n", arg2, arg4); }
/* @@stderr: divide-by-zero in action #6[^\n]*\n[^\n]*divide-by-zero in action #2
   @@output
before
action 6, fault 4
1
action 2, fault 4
*/
