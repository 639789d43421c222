/* Without a process's number in the provider's name the markers of all that run are meant: the provider's pattern.
   @@blanks: any
   @@program: query.py
   @@python: 3.9 */
python*:::function-entry
/pid == $target && copyinstr(arg1) == "query"/
{
	@ = count();
}
/* @@output
3
*/
