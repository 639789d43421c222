/* The first fault of a clause is the one that ends it (guide, "dtrace Provider"): 1 is a bad address, 4 a division. */
/* @@stderr: (?s)invalid address.*divide-by-zero.*invalid address.*divide-by-zero.*invalid address */
int zero;
BEGIN { trace(copyinstr(0)); trace(1 / zero); }
BEGIN { trace(3); @[1 / zero] = count(); trace(2); }
BEGIN { trace(copyinstr(0)); @[1 / zero] = count(); }
BEGIN { printf("%d %s", 1, copyinstr(1 / zero)); }
BEGIN { printf("%s %d", copyinstr(0), 1 / zero); }
BEGIN { exit(0); }
ERROR { printf("%d\n", arg4); }
/* @@output
1
4
1
4
1
*/
