/* An aggregation's actions: the number of the aggregation is the first, then come the keys, the weight and the value
   (as illumos compiles it: the number tells the aggregations apart in the buffer).
   @@stderr: in action #2 */
int z;
BEGIN { @a[1 / z] = count(); }
BEGIN { @b[1, 2 / z] = count(); }
BEGIN { @c[1] = sum(1 / z); }
BEGIN { @d = quantize(1, 1 / z); }
BEGIN { @e = quantize(1 / z, 2); }
BEGIN { @f[1] = count(); trace(1 / z); }
BEGIN { exit(0); }
ERROR { printf("%d ", arg2); }
END { printa("%d: %@d", @f); }
/* @@output
2 3 3 2 3 4 1: 1
*/
