/* Many keys: each is counted once.
   @@blanks: any */
BEGIN
{
	@[0] = count();
	@[1] = count();
	@[2] = count();
	@[3] = count();
	@[4] = count();
	@[5] = count();
	@[6] = count();
	@[7] = count();
	@[8] = count();
	@[9] = count();
	@[10] = count();
	@[11] = count();
	@[12] = count();
	@[13] = count();
	@[14] = count();
	@[15] = count();
	@[16] = count();
	@[17] = count();
	@[18] = count();
	@[19] = count();
	exit(0);
}
/* @@output
0 1
1 1
2 1
3 1
4 1
5 1
6 1
7 1
8 1
9 1
10 1
11 1
12 1
13 1
14 1
15 1
16 1
17 1
18 1
19 1
*/
