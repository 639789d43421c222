/* The default format: keys of 8 bytes in 16 places, of 4 in 8, strings in 50 to the left, the value in 16. */
BEGIN
{
	@a["abc"] = count();
	@b[(int)1, (long)2] = count();
	@c[(char)3, (short)4] = count();
	exit(0);
}
/* @@output
  abc                                                               1
        1                2                1
   3     4                1
*/
