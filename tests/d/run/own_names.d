/* What a script declares itself is the script's, though a library has something of that name. */
inline int SIGHUP = 77;
int ENOENT;
typedef struct psinfo { int mine; } psinfo_t;
psinfo_t curpsinfo;
enum { O_RDONLY = 5 };
BEGIN
{
	ENOENT = 3;
	curpsinfo.mine = 4;
	printf("%d %d %d %d %d\n", SIGHUP, ENOENT, sizeof (psinfo_t), curpsinfo.mine, O_RDONLY);
	exit(0);
}
/* @@output
77 3 4 4 5
*/
