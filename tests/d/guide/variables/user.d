/* uid and gid of the process.
   @@program: ppid.py
   @@python: 3.9 */
syscall::getppid:entry
/pid == $target/
{
	printf("%d %d %d %d", uid, gid, uid == $uid, gid == $gid);
}
/* @@output
0 0 1 1
*/
