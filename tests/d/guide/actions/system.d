/* "system": date, and printf's conversions with a pipe; the moment is that of the first line of the guide's output. */
#pragma D option destructive
#pragma D option quiet

BEGIN
{
	system("TZ=CST6CDT LC_ALL=C date -d @%d '+%%a %%b %%d %%H:%%M:%%S %%Z %%Y'", 1090342586);
	system("getent passwd %d | cut -d: -f1", 0);
	exit(0);
}
/* @@output
Tue Jul 20 11:56:26 CDT 2004
root
*/
