/* alloca() gives scratch memory, which is zero each time. */
tick-1ms
/n++ < 3/
{
	this->p = (int *)alloca(2 * sizeof (int));
	this->more = (char *)alloca(pid - pid + 400);
	printf("%d %d %d\n", this->p[0], ++this->p[1], this->more[399]);
	this->p[0] = 7;
	this->more[399] = 'x';
}
tick-1ms
/n == 3/
{
	exit(0);
}
/* @@output
0 1 0
0 1 0
0 1 0
*/
