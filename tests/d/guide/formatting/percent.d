/* %% is a percent sign. */
BEGIN
{
	printf("100%% %d%%", 5);
	exit(0);
}
/* @@output
100% 5%
*/
