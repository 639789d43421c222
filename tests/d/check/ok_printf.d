BEGIN
{
	printf("%d %5d %-5d|%x %o %u %c %i\n", 1, 2, 3, 4, 5, 6, 65, pid);
	printf("%s %10s %.3s %S", execname, probename, "x", probefunc);
	printf("%*d %.*s %-*s", 5, 1, 2, "x", 3, "y");
	printf("100%%\n");
	printf("%p %a %Y", arg0, arg1, walltimestamp);
	printf("%ld %lld %hd %lu", arg0, timestamp, pid, arg1);
}
