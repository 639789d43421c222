/* if and else: nested, with and without braces, with nothing to do, and what variables and aggregations they leave. */
int n, big;
string kind;
tick-1ms
/n < 6/
{
	n++;
	if (n == 1)
		kind = "one";
	else if (n < 4) {
		kind = "few";
		this->twice = n * 2;
		if (n & 1)
			printf("odd ");
		else {
			printf("even ");
			;
		}
	} else
		kind = "many";
	if (kind != "few") {
	} else
		printf("%d ", this->twice);
	if (n > 5);
	else if (n > 3)
		if (n == 4)
			@four[kind] = count();
		else			/* of the inner if */
			@five[kind] = sum(n);
	printf("%d %s\n", n, kind);
	if (kind == "many") {
		printf("%s", "seen: ");
		trace(n);
		trace("\n");
		big++;
	}
}
tick-1ms
/n == 6/
{
	printf("%d\n", big);
	printa("%s %@d\n", @four);
	printa("%s %@d\n", @five);
	if (big)
		exit(3);
	else
		exit(4);
	printf("what is behind the if is as a clause of its own: not any more\n");
}
/* @@exit: 3
   @@output
1 one
even 4 2 few
odd 6 3 few
4 many
seen: 4
5 many
seen: 5
6 many
seen: 6
3
many 1
many 5
*/
