/* A negative factor turns the sign; what is left over falls to the side of 0, as C's division has it.
   @@options: -q
   @@blanks: any */
BEGIN
{
	@sum["a"] = sum(7);
	@sum["b"] = sum(-7);
	@count["a"] = count();
	@count["a"] = count();
	@average["a"] = avg(9);
	@average["a"] = avg(12);
	@least["a"] = min(-5);
	@unsigned["a"] = max((uint64_t)30);
	@spread["a"] = stddev(10);
	@spread["a"] = stddev(30);
	@edge["a"] = min(-9223372036854775807 - 1);
	@quantized["a"] = quantize(4);
	@quantized["a"] = quantize(4);
	normalize(@sum, -2);
	normalize(@count, -2);
	normalize(@average, -2);
	normalize(@least, -1);
	normalize(@unsigned, -4);
	normalize(@spread, -2);
	normalize(@edge, -2);
	normalize(@quantized, -2);
	printa("%s %@d\n", @sum);
	printa("%s %@d\n", @count);
	printa("%s %@d\n", @average);
	printa("%s %@d\n", @least);
	printa("%s %@d\n", @unsigned);
	printa("%s %@d\n", @spread);
	printa("%s %@d\n", @edge);
	printa("%@d", @quantized);
	trunc(@quantized);
	exit(0);
}
END
{
	/* The quotient of the least number and -1 is the one that an int64_t cannot hold: it stays itself. */
	normalize(@edge, -1);
	printa("%@d\n", @edge);
	trunc(@sum);
	trunc(@count);
	trunc(@average);
	trunc(@least);
	trunc(@unsigned);
	trunc(@spread);
	trunc(@edge);
}
/* @@output
b 3
a -3
a -1
a -5
a 5
a -7
a 5
a 4611686018427387904

           value  ------------- Distribution ------------- count    
               2 |                                         0        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ -1       
               8 |                                         0        
-9223372036854775808
*/
