/* Actions of several clauses are carried out in their order. */
BEGIN
{
	printf("1 ");
}
BEGIN { printf("2 "); }
BEGIN { printf("3"); exit(0); }
/* @@output
1 2 3
*/
