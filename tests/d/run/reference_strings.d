/* strtok() leaves the delimiter that ended a token; reading a string at 0 is a fault; with
   aggsortrev what is left at the end is printed in reverse, the aggregations as their rows.
   @@options: -q -x aggsortrev
   @@stderr: (?s)dt_clause_1 .*invalid address \(0x0\).*dt_clause_2 .*invalid address \(0x0\) */
BEGIN
{
	printf("%s ", strtok("..ab,cd;e", ".,"));
	printf("%s ", strtok(NULL, ";"));
	printf("%s ", strtok(NULL, ";"));
	printf("%d\n", strtok(NULL, ";") == NULL);
	@a["one"] = sum(1);
	@a["two"] = sum(2);
	@b["three"] = sum(3);
}
BEGIN { trace(strlen(0)); }
BEGIN { trace(substr(NULL, 1)); }
BEGIN { exit(0); }
/* @@blanks: any
   @@output
ab ,cd e 1
three 3
two 2
one 1
*/
