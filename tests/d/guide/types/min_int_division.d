/* The smallest integer divided by -1 wraps. */
BEGIN
{
	this->a = (int64_t)1 << 63;
	b = -1;
	printf("%d %d", this->a / b, this->a % b);
	exit(0);
}
/* @@output
-9223372036854775808 0
*/
