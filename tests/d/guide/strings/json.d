/* json(): a value in a text of JSON, by its path. */
BEGIN
{
	this->j = "{\"a\": 1, \"b\": {\"c\": [10, \"x\", true]}, \"d\": null}";
	printf("%s %s %s %s [%s]", json(this->j, "a"), json(this->j, "b.c[0]"), json(this->j, "b.c[1]"), json(this->j, "b.c[2]"), json(this->j, "no"));
	exit(0);
}
/* @@output
1 10 x true []
*/
