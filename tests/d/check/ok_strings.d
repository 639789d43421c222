BEGIN
{
	trace(strjoin(execname, "x"));
	trace(substr("abc", 1));
	trace(substr("abc", 1, 1));
	trace(index("abc", "b"));
	trace(rindex("abc", "b", 1));
	trace(strchr("abc", 'b'));
	trace(strrchr("abc", 'b'));
	trace(strstr("abc", "b"));
	trace(strlen("abc"));
	trace(lltostr(pid));
	trace(lltostr(pid, 16));
	trace(basename("/a/b"));
	trace(dirname("/a/b"));
	trace(toupper("a"));
	trace(tolower("A"));
	trace(copyinstr(arg0, 10));
}
