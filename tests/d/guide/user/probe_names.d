/* What the description's parts are at such a probe.
   @@program: calls.py
   @@python: 3.9 */
pid$target:libc:getppid:entry
{
	printf("%d %s %s\n", probeprov == strjoin("pid", lltostr($target)), probefunc, probename);
}
/* @@output
1 getppid entry
1 getppid entry
*/
