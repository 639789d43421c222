/* Actions of several clauses are carried out in their order. */
BEGIN
{
	printf("1 ");
	exit(0);
}
BEGIN { printf("2 "); }
BEGIN { printf("3"); }
/* @@output
1 2 3
*/
