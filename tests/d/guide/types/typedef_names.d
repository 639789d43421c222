/* The names of Solaris's types are there, too. */
BEGIN
{
	printf("%d %d %d %d ", sizeof (uchar_t), sizeof (ushort_t), sizeof (uint_t), sizeof (ulong_t));
	printf("%d %d %d", sizeof (size_t), sizeof (pid_t), sizeof (id_t));
	exit(0);
}
/* @@output
1 2 4 8 8 4 4
*/
