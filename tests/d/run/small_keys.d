/* Keys of one and two bytes are shown as unsigned, as libdtrace does; printa() with a format heeds their sign. */
BEGIN
{
	@[(char)-1, (short)-2, -3, (uint8_t)200] = count();
	printa(@);
	printa("%d %d %d %d\n", @);
	exit(0);
}
/* @@blanks: any
   @@output
255 65534 -3 200 1
-1 -2 -3 200
*/
