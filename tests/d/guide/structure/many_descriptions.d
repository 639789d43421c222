/* A clause for several probes; it runs for each.
   @@blanks: any */
dtrace:::BEGIN,
tick-1ms,
dtrace:::END
{
	printf("%s ", probename);
}
tick-1ms { exit(0); }
/* @@output
BEGIN tick-1ms END
*/
