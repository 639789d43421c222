/* Values of unsigned types are shown unsigned.
   @@blanks: any */
BEGIN
{
	@ = max((uint64_t)-1);
	exit(0);
}
/* @@output
18446744073709551615
*/
