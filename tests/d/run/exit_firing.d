/* exit() in a firing: clauses behind it are left out, whether it was called by a clause, in an if, or by ERROR. */
/* @@program: generator.py
   @@stderr: divide-by-zero */
int zero;
python$target:::function-entry
{
	n++;
}
python$target:::function-entry
/n == 2/
{
	trace(1 / zero);
	printf("never\n");
}
python$target:::function-entry
{
	printf("%d\n", n);
}
ERROR { if (arg4 == 4) exit(1); else exit(2); printf("as END's, ERROR's clauses go on\n"); }
ERROR { printf("all of them\n"); }
END { printf("%d\n", n); }
/* @@exit: 1
   @@output
1
as END's, ERROR's clauses go on
all of them
2
*/
