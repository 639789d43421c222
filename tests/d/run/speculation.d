/* What is traced speculatively is printed when it is committed, in its place, or never; the guide's chapter. */
#pragma D option nspec=2
BEGIN
{
	first = speculation();
	second = speculation();
	none = speculation();	/* both are taken */
	printf("%d %d %d\n", first, second, none);
}
BEGIN { speculate(first); printf("first, 1\n"); }
BEGIN { speculate(second); printf("second, 1\n"); }
BEGIN { printf("not speculative\n"); }
BEGIN { speculate(first); printf("first, 2\n"); }
BEGIN { speculate(none); printf("never: no speculation\n"); }
BEGIN { speculate(77); printf("never: no such speculation\n"); }
BEGIN { commit(second); }
BEGIN { speculate(second); printf("never: it was committed\n"); }
BEGIN { commit(first); }
BEGIN { first = speculation(); }
BEGIN { speculate(first); printf("never: discarded\n"); }
BEGIN { discard(first); }
BEGIN { commit(first); } BEGIN { printf("an inactive one commits nothing\n"); }
BEGIN { again = speculation(); printf("%d\n", again); exit(0); }
/* @@stderr: 1 failed speculation \(no speculative buffer available\)
   @@output
1 2 0
not speculative
second, 1
first, 1
first, 2
an inactive one commits nothing
1
*/
