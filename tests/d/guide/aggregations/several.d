/* Several aggregations are printed in the order in which the script names them.
   @@blanks: any */
BEGIN
{
	@b["x"] = count();
	@a["y"] = count();
	@["z"] = sum(9);
	exit(0);
}
/* @@output
x 1
y 1
z 9
*/
