/* A marker's arguments are arg0, arg1 ... as its provider defines them: the file, the function, the line.
   @@program: query.py
   @@python: 3.9 3.11 3.13 3.14 3.15 */
python$target:::function-entry
/copyinstr(arg1) == "query"/
{
	printf("%s %s %d\n", basename(copyinstr(arg0)), copyinstr(arg1), arg2);
}
/* @@output
query.py query 4
query.py query 4
query.py query 4
*/
