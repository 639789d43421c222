/* The other macros: ids of the tracer's process. */
BEGIN { printf("%d%d%d%d", $pid > 1, $uid == $euid, $gid == $egid, $pid != $ppid); exit(0); }
/* @@output
1111
*/
