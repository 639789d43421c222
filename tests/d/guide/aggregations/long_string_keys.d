/* String keys are compared as a whole.
   @@blanks: any */
BEGIN
{
	@["a string key that is rather long but differs only at its end: 1"] = sum(5);
	@["a string key that is rather long but differs only at its end: 2"] = sum(3);
	exit(0);
}
/* @@output
a string key that is rather long but differs only at its end: 2 3
a string key that is rather long but differs only at its end: 1 5
*/
