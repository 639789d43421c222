/* The functions of a Python program, by the markers of its interpreter: name, file and line.
   @@program: calls.py
   @@python: 3.9 3.11 3.15 */
python$target:::function-entry
/basename(copyinstr(arg0)) == "calls.py" && copyinstr(arg1) != "<module>"/
{
	printf("%s %s:%d\n", copyinstr(arg1), basename(copyinstr(arg0)), arg2);
}
/* @@output
outer calls.py:4
inner calls.py:9
inner calls.py:9
*/
