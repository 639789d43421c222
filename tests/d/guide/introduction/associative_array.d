/* Keys of several parts, values by key; an element that nobody has assigned is zero. */
BEGIN
{
	a[123, "hello"] = 456;
	trace(a[123, "hello"]);
	trace(" ");
	a[123, "hello"] = 789;
	trace(a[123, "hello"]);
	trace(" ");
	trace(a[124, "hello"]);
	a[123, "hello"] = 0;
	trace(" ");
	trace(a[123, "hello"]);
	exit(0);
}
/* @@output
456 789 0 0
*/
