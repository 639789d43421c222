/* A countdown: a variable that each tick lowers, and a word at zero. */
BEGIN
{
	i = 10;
}

profile:::tick-1ms
/i > 0/
{
	trace(i--);
}

profile:::tick-1ms
/i == 0/
{
	trace("blastoff!");
	exit(0);
}
/* @@output
10987654321blastoff!
*/
