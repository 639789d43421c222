/* The guide leaves open what they have at the next firing; here they are zero again. */
this int x;
tick-1ms
{
	printf("%d,", this->x);
	this->x = 7;
	n++;
}
tick-1ms
/n == 3/
{
	exit(0);
}
/* @@output
0,0,0,
*/
