/* pid$target: a function of the C library, counted.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 3.13 */
pid$target:libc:getppid:entry
{
	@[probefunc, probename] = count();
}
/* @@output
getppid entry 2
*/
