/* A string that is NULL faults where it is read, and can be copied and compared. */
string global;
self string none;
self string empty;
self string freed;
this string local;
string words[string];

BEGIN
{
	self->empty = "";
	self->freed = "x";
	self->freed = NULL;
	words["empty"] = "";
	words["freed"] = "x";
	words["freed"] = strchr("abc", 'x');
	printf("[%s] [%s] [%s] [%s]\n", global, self->empty, words["empty"], this->local);
	found = strstr("abc", "bc");
	lost = strstr("abc", "x");
	copy = lost;
	self->copy = self->none;
	this->choice = 1 ? strtok("", ",") : "x";
	printf("%s %d %d %d %d\n", found, lost == NULL, copy == NULL, self->copy == NULL, this->choice == NULL);
}
BEGIN { printf("no %s", self->none); }
BEGIN { printf("no %s", self->freed); }
BEGIN { printf("no %s", words["none"]); }
BEGIN { printf("no %s", words["freed"]); }
BEGIN { printf("no %s", lost); }
BEGIN { printf("no %s", copy); }
BEGIN { printf("no %s", strrchr("abc", 'x')); }
BEGIN { printf("no %d", strlen(words["none"])); }
BEGIN { printf("no %d", self->none[0]); }
BEGIN { lost = "back"; printf("%s\n", lost); exit(0); }
ERROR { printf("%d 0x%x\n", arg4 == DTRACEFLT_BADADDR, arg5); }
/* @@inside: no, the lines of several clauses
   @@stderr: (?s)(.*invalid address \(0x0\)){9}
   @@output
[] [] [] []
bc 1 1 1 1
1 0x0
1 0x0
1 0x0
1 0x0
1 0x0
1 0x0
1 0x0
1 0x0
1 0x0
back
*/
