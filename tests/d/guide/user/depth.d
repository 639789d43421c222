/* Depth by a self-> variable: the guide's indentation by hand.
   @@program: calls.py
   @@python: 3.9 3.13 */
self int depth;
python$target:::function-entry
/basename(copyinstr(arg0)) == "calls.py"/
{
	printf("%*s%s\n", self->depth * 2, "", copyinstr(arg1));
	self->depth++;
}
python$target:::function-return
/basename(copyinstr(arg0)) == "calls.py"/
{
	self->depth--;
}
/* @@output
<module>
  outer
    inner
    inner
*/
