/* The current directory and the root of the traced process: as strings in what takes strings. */
/* @@python: 3.11 */
python$target:::function-entry
/copyinstr(arg1) == "inside" && cwd != "/"/
{
	printf("%s %s %d\n", cwd, root, strlen(cwd));
	a[cwd] = basename(cwd);
	self->before = cwd;
	@[cwd, root] = count();
}
python$target:::function-entry
/copyinstr(arg1) == "away"/
{
	printf("%s %s %s\n", a["/usr/share"], self->before, strjoin(cwd, "|"));
}
END { printa("%s %s %@d\n", @); }
/* @@output
/usr/share / 10
/usr/share / 10
share /usr/share /|
/usr/share / 2
*/
