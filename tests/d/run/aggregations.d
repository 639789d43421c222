/* @@blanks: any
 * The aggregating functions over 1, 2, 3, 4, 10: stddev is the root of the mean square minus the squared mean,
 * sqrt(26 - 16), an integer as all values are.
 */
BEGIN { v[0] = 1; v[1] = 2; v[2] = 3; v[3] = 4; v[4] = 10; i = 0; }
tick-10ms
/i < 5/
{
	@c["count"] = count();
	@s["sum"] = sum(v[i]);
	@l["min"] = min(v[i]);
	@h["max"] = max(v[i]);
	@a["avg"] = avg(v[i]);
	@d["stddev"] = stddev(v[i]);
	i++;
}
tick-10ms /i == 5/ { exit(0); }
/* @@output
 count 5

 sum 20

 min 1

 max 10

 avg 4

 stddev 3
*/
