/* The options as pragmas.
   @@blanks: any
   @@options: */
#pragma D option aggsortrev
#pragma D option quiet
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	exit(0);
}
/* @@output
b 2
a 1
*/
