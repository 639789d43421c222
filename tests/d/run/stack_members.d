/* @@options: -q -x ustackframes=9 */
/* What a stack was asked for with: how many frames, whose, for which process, room for names. */
BEGIN
{
	printf("%d %d %d %d\n", ustack(7).depth, ustack(7).is_user, ustack(7).pid == pid, ustack(7).strsz);
	printf("%d %d %d %d\n", stack(4).depth, stack(4).is_user, stack(4).pid, stack(4).strsz);
	printf("%d %d %d\n", ustack().depth, ustack(7, 30).strsz, sizeof(stack().pid));
	exit(0);
}
/* @@output
7 1 1 0
4 0 0 0
9 30 4
*/
