/* Strings are cut at strsize - 1 bytes, not at a whole number of words.
   @@options: -q -x strsize=13
 */
BEGIN
{
	s = strjoin("abcdefghij", "klmnopqrst");
	a[s] = s;
	printf("%s %d %s %d\n", s, strlen(strjoin(s, s)), a["abcdefghijkl"], sizeof(s));
	printf("%s\n", substr("0123456789ABCDEF", 1));
}
python$target:::function-entry /substr(copyinstr(arg1), 0, 4) == "long"/ { @[copyinstr(arg1)] = count(); }
python$target:::function-entry { @all[copyinstr(arg1)] = count(); }
END { printa("%s %@d\n", @); trunc(@all); }
/* @@output
abcdefghijkl 12 abcdefghijkl 13
123456789AB
long_name_of 3
*/
