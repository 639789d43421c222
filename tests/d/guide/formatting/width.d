/* A width is the least number of places, right or with - left. */
BEGIN
{
	printf("[%5d][%-5d][%1d][%5s][%-5s]", 42, 42, 12345, "ab", "ab");
	exit(0);
}
/* @@output
[   42][42   ][12345][   ab][ab   ]
*/
