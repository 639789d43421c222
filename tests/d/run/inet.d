/* @@stderr: error in dt_clause_1 .*: illegal operation at */
/* The witness is in the program: Python's socket.inet_ntop. */
python$target:::function-entry
/copyinstr(arg1) == "abcdefghijklmnop"/
{
	this->a = copyin(arg1, 16);
	printf("%s\n", link_ntop(1, this->a));
	printf("%s\n%s\n%s\n%s\n", inet_ntoa6(this->a), inet_ntop(10, this->a), inet_ntop(2, this->a), inet_ntoa(this->a));
}

python$target:::function-entry
/copyinstr(arg1) == "abcdefghijklmnop"/
{
	printf("%s", inet_ntop(77, copyin(arg1, 16)));
}
/* @@output
61:62:63:64:65:66
6162:6364:6566:6768:696a:6b6c:6d6e:6f70
6162:6364:6566:6768:696a:6b6c:6d6e:6f70
97.98.99.100
97.98.99.100
*/
