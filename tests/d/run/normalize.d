/* normalize() divides what is shown, denormalize() undoes it; trunc() leaves the largest. */
BEGIN
{
	@["a"] = sum(1000);
	@["b"] = sum(2500);
	@["c"] = sum(300);
	normalize(@, 100);
	printa("%s %@d\n", @);
	denormalize(@);
	trunc(@, 1);
	printa("%s %@d\n", @);
	trunc(@);
	exit(0);
}
/* @@output
c 3
a 10
b 25
b 2500
*/
