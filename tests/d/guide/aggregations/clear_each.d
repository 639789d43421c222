/* clear() of each function, with a key and without: the value becomes zero, its line stays.
   @@options: -q
   @@blanks: any */
BEGIN
{
	@count = count();		@counts["k"] = count();
	@sum = sum(5);			@sums["k"] = sum(5);
	@avg = avg(5);			@avgs["k"] = avg(5);
	@min = min(5);			@mins["k"] = min(5);
	@max = max(5);			@maxs["k"] = max(5);
	@stddev = stddev(5);		@stddevs["k"] = stddev(5);
	clear(@count);			clear(@counts);
	clear(@sum);			clear(@sums);
	clear(@avg);			clear(@avgs);
	clear(@min);			clear(@mins);
	clear(@max);			clear(@maxs);
	clear(@stddev);			clear(@stddevs);
	printa("count %@d\n", @count);	printa("%s %@d\n", @counts);
	printa("sum %@d\n", @sum);	printa("%s %@d\n", @sums);
	printa("avg %@d\n", @avg);	printa("%s %@d\n", @avgs);
	printa("min %@d\n", @min);	printa("%s %@d\n", @mins);
	printa("max %@d\n", @max);	printa("%s %@d\n", @maxs);
	printa("stddev %@d\n", @stddev); printa("%s %@d\n", @stddevs);
	exit(0);
}
/* @@output
count 0
k 0
sum 0
k 0
avg 0
k 0
min 0
k 0
max 0
k 0
stddev 0
k 0
*/
