/* substr() as Perl's, after which it is made; strtoll() as Python's int().
   An index before the string together with a negative count gives nothing in DTrace: it is left out here. */
BEGIN
{
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", 0), substr("hello", 0, 0), substr("hello", 0, 1), substr("hello", 0, 3), substr("hello", 0, 100),
	    substr("hello", 0, -1), substr("hello", 0, -4), substr("hello", 0, -5), substr("hello", 0, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", 1), substr("hello", 1, 0), substr("hello", 1, 1), substr("hello", 1, 3), substr("hello", 1, 100),
	    substr("hello", 1, -1), substr("hello", 1, -4), substr("hello", 1, -5), substr("hello", 1, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", 4), substr("hello", 4, 0), substr("hello", 4, 1), substr("hello", 4, 3), substr("hello", 4, 100),
	    substr("hello", 4, -1), substr("hello", 4, -4), substr("hello", 4, -5), substr("hello", 4, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", 5), substr("hello", 5, 0), substr("hello", 5, 1), substr("hello", 5, 3), substr("hello", 5, 100),
	    substr("hello", 5, -1), substr("hello", 5, -4), substr("hello", 5, -5), substr("hello", 5, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", 6), substr("hello", 6, 0), substr("hello", 6, 1), substr("hello", 6, 3), substr("hello", 6, 100),
	    substr("hello", 6, -1), substr("hello", 6, -4), substr("hello", 6, -5), substr("hello", 6, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", -1), substr("hello", -1, 0), substr("hello", -1, 1), substr("hello", -1, 3), substr("hello", -1, 100),
	    substr("hello", -1, -1), substr("hello", -1, -4), substr("hello", -1, -5), substr("hello", -1, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("hello", -5), substr("hello", -5, 0), substr("hello", -5, 1), substr("hello", -5, 3), substr("hello", -5, 100),
	    substr("hello", -5, -1), substr("hello", -5, -4), substr("hello", -5, -5), substr("hello", -5, -100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("hello", -6), substr("hello", -6, 0), substr("hello", -6, 1),
	    substr("hello", -6, 3), substr("hello", -6, 100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("hello", -10), substr("hello", -10, 0), substr("hello", -10, 1),
	    substr("hello", -10, 3), substr("hello", -10, 100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("", 0), substr("", 0, 0), substr("", 0, 1), substr("", 0, 3), substr("", 0, 100),
	    substr("", 0, -1), substr("", 0, -4), substr("", 0, -5), substr("", 0, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("", 1), substr("", 1, 0), substr("", 1, 1), substr("", 1, 3), substr("", 1, 100),
	    substr("", 1, -1), substr("", 1, -4), substr("", 1, -5), substr("", 1, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("", 4), substr("", 4, 0), substr("", 4, 1), substr("", 4, 3), substr("", 4, 100),
	    substr("", 4, -1), substr("", 4, -4), substr("", 4, -5), substr("", 4, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("", 5), substr("", 5, 0), substr("", 5, 1), substr("", 5, 3), substr("", 5, 100),
	    substr("", 5, -1), substr("", 5, -4), substr("", 5, -5), substr("", 5, -100));
	printf("[%s][%s][%s][%s][%s][%s][%s][%s][%s]\n",
	    substr("", 6), substr("", 6, 0), substr("", 6, 1), substr("", 6, 3), substr("", 6, 100),
	    substr("", 6, -1), substr("", 6, -4), substr("", 6, -5), substr("", 6, -100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("", -1), substr("", -1, 0), substr("", -1, 1),
	    substr("", -1, 3), substr("", -1, 100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("", -5), substr("", -5, 0), substr("", -5, 1),
	    substr("", -5, 3), substr("", -5, 100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("", -6), substr("", -6, 0), substr("", -6, 1),
	    substr("", -6, 3), substr("", -6, 100));
	printf("[%s][%s][%s][%s][%s]\n",
	    substr("", -10), substr("", -10, 0), substr("", -10, 1),
	    substr("", -10, 3), substr("", -10, 100));
	printf("%d %s\n", strtoll("101", 2), lltostr(strtoll("101", 2), 10));
	printf("%d %s\n", strtoll("zz", 36), lltostr(strtoll("zz", 36), 10));
	printf("%d %s\n", strtoll("-7f", 16), lltostr(strtoll("-7f", 16), 10));
	printf("%d %s\n", strtoll("0x7f", 16), lltostr(strtoll("0x7f", 16), 10));
	printf("%d %s\n", strtoll("777", 8), lltostr(strtoll("777", 8), 10));
	printf("%d %s\n", strtoll("9223372036854775807", 10), lltostr(strtoll("9223372036854775807", 10), 10));
	printf("%d %s\n", strtoll("-9223372036854775808", 10), lltostr(strtoll("-9223372036854775808", 10), 10));
	printf("%d %d %d %d %d %d\n", strtoll("  12"), strtoll("\t -7"), strtoll(" +7f", 16), strtoll("+ 7"), strtoll("\n7"),
	    strtoll("   0x1f", 16));
	printf("%d\n", strtoll("0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000012"));
	exit(0);
}
/* @@output
[hello][][h][hel][hello][hell][h][][]
[ello][][e][ell][ello][ell][][][]
[o][][o][o][o][][][][]
[][][][][][][][][]
[][][][][][][][][]
[o][][o][o][o][][][][]
[hello][][h][hel][hello][hell][h][][]
[hello][][][he][hello]
[hello][][][][hello]
[][][][][][][][][]
[][][][][][][][][]
[][][][][][][][][]
[][][][][][][][][]
[][][][][][][][][]
[][][][][]
[][][][][]
[][][][][]
[][][][][]
5 5
1295 1295
-127 -127
127 127
511 511
9223372036854775807 9223372036854775807
-9223372036854775808 -9223372036854775808
12 -7 127 0 0 31
12
*/
