/* Elements copy by value. */
BEGIN
{
	a["x"] = 1;
	b["y"] = a["x"];
	a["x"] = 2;
	s["k"] = "v";
	t = s["k"];
	s["k"] = "w";
	printf("%d %d %s %s", a["x"], b["y"], t, s["k"]);
	exit(0);
}
/* @@output
2 1 v w
*/
