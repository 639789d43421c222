/* A string of the process's memory is the same key, whatever lies behind it there. */
int seen[string];
self int own[string, int];
python$target:::function-entry
/copyinstr(arg1) == "key_of_memory"/
{
	seen["same"] = 1;
	seen[copyinstr(0x210000000000)] += 2;
	seen[copyinstr(0x210000000100)] += 4;
	self->own["same", 1] = 8;
	self->own[copyinstr(0x210000000100), 1] += 16;
	printf("%d %d\n", seen[copyinstr(0x210000000000)], self->own[copyinstr(0x210000000000), 1]);
	@[copyinstr(0x210000000000)] = count();
	@[copyinstr(0x210000000100)] = count();
	@["same"] = count();
}
/* @@output
7 24

  same                                                              3
*/
