/* Division of unsigned values. */
BEGIN
{
	this->a = (uint64_t)-1;
	b = 2;
	printf("%u %u", this->a / b, this->a % 10);
	exit(0);
}
/* @@output
9223372036854775807 5
*/
