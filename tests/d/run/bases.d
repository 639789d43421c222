/* A base beyond 2 to 36 is an illegal operation, as a constant and as a value; the clause ends there. */
int n, base, illegal;

BEGIN { base = 37; printf("%d %s\n", strtoll("z", base - 1), lltostr(35, base - 1)); base = 1; }
BEGIN { n++; trace(strtoll("0", 37)); n += 100; }
BEGIN { n++; trace(strtoll("0", base)); n += 100; }
BEGIN { n++; trace(strtoll("0", base - 1)); n += 100; }
BEGIN { n++; trace(lltostr(5, 1)); n += 100; }
BEGIN { n++; trace(lltostr(5, base + 36)); n += 100; }
BEGIN { n++; trace(lltostr(5, -base)); n += 100; }
ERROR { illegal += arg4 == DTRACEFLT_ILLOP; }
BEGIN { printf("%d %d\n", n, illegal); exit(0); }
/* @@options: -q
@@inside: no, the tracer tells of each fault
@@stderr: illegal operation
@@output
35 z
6 6
*/
