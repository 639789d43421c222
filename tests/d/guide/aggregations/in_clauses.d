/* Each clause adds to the same aggregation.
   @@blanks: any */
BEGIN
{
	@["n"] = count();
}
BEGIN { @["n"] = count(); exit(0); }
END { @["n"] = count(); }
/* @@output
n 3
*/
