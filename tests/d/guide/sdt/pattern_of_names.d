/* Patterns in the name of the probe.
   @@blanks: any
   @@program: query.py
   @@python: 3.9 */
python$target:::function-*
/copyinstr(arg1) == "query"/
{
	@[probename] = count();
}
/* @@output
function-entry 3
function-return 3
*/
