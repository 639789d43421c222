/* Calls of a traced program, by function and line: the guide's way to ask what is called how often.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 3.13 */
python$target:::function-entry
/basename(copyinstr(arg0)) == "calls.py"/
{
	@[copyinstr(arg1)] = count();
}
/* @@output
<module> 1
b 2
a 6
*/
