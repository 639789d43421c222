/* A fault in a branch or in a condition tells its clause, and ends the clause. */
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
ERROR { printf("clause %d, fault %d\n", arg2, arg4); }
/* @@stderr: dt_clause_0 .*divide-by-zero[^\n]*\n[^\n]*dt_clause_1 .*divide-by-zero
   @@output
before
clause 0, fault 4
1
clause 1, fault 4
*/
