/* Integers wrap at the size of their type. */
BEGIN
{
	this->i = 0x7fffffff;
	this->i++;
	this->u = (unsigned int)0;
	this->u--;
	this->l = 0x7fffffffffffffff;
	this->l++;
	printf("%d %u %d", this->i, this->u, this->l);
	exit(0);
}
/* @@output
-2147483648 4294967295 -9223372036854775808
*/
