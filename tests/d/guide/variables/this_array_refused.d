/* There are no clause-local associative arrays.
   @@exit: 1
   @@stderr: this->a|clause-local */
BEGIN
{
	this->a[1] = 2;
	exit(0);
}
