/* probeprov, probemod, probefunc and probename describe the probe that fired. */
BEGIN, tick-1ms, END
{
	printf("[%s:%s:%s:%s]", probeprov, probemod, probefunc, probename);
}
tick-1ms
{
	exit(0);
}
/* @@output
[dtrace:::BEGIN][profile:::tick-1ms][dtrace:::END]
*/
