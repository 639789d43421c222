/* Each clause adds to the same aggregation.
   @@blanks: any */
BEGIN
{
	@["n"] = count();
	exit(0);
}
BEGIN { @["n"] = count(); }
END { @["n"] = count(); }
/* @@output
n 3
*/
