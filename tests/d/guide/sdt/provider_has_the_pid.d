/* probeprov is the provider's name with the process's number behind it.
   @@program: query.py
   @@python: 3.9 */
python$target:::function-entry
/copyinstr(arg1) == "main" && basename(copyinstr(arg0)) == "query.py"/
{
	printf("%d %s", probeprov == strjoin("python", lltostr(pid)), probename);
}
/* @@output
1 function-entry
*/
