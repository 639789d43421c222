/* Names of libraries' types and userland begin declarations, too. */
userland char *text;
self psinfo_t ps;
psinfo_t nobody;
vmlinux`pid_t number;
BEGIN
{
	number = 0x123456789;
	this->now = *curpsinfo;
	printf("%d %d %x %d [%s]\n", text == NULL, nobody.pr_pid, number, sizeof (number), nobody.pr_fname);
	printf("%d %s %d\n", this->now.pr_pid == pid, this->now.pr_fname, this->now.pr_addr == (uintptr_t)curthread);
	exit(0);
}
/* @@output
1 0 23456789 4 []
1 dtrace 1
*/
