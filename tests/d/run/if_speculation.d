/* Speculations and if: speculate() holds to the end of its block, ifs in it included. */
#pragma D option nspec=2
BEGIN { spec = speculation(); other = speculation(); }
BEGIN
{
	speculate(spec);
	printf("1 ");
	if (spec)
		printf("2 ");
	else
		printf("never ");
	if (!spec)
		printf("never ");
	printf("3\n");
}
BEGIN
{
	if (spec == 0)
		printf("never\n");
	else {
		speculate(other);
		printf("forgotten ");
		if (1)
			printf("too ");
	}
}
BEGIN { printf("first\n"); }
BEGIN { if (spec) { commit(spec); } else { discard(spec); } if (other) discard(other); }
BEGIN { spec = speculation(); discard(other); speculate(spec); printf("never\n"); }
BEGIN { discard(spec); printf("last\n"); exit(0); }
/* @@output
first
1 2 3
last
*/
