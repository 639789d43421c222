/* Its output comes where the action stands among the others.
   @@options: -q -w */
BEGIN
{
	printf("before\n");
	system("echo between");
	printf("behind\n");
	exit(0);
}
/* @@output
before
between
behind
*/
