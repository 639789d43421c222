/* The precision of an integer is the least number of digits. */
BEGIN
{
	printf("[%.3d][%6.3d][%-6.3d][%.5x]", 5, 5, 5, 255);
	exit(0);
}
/* @@output
[005][   005][005   ][000ff]
*/
