// A line, /* in which nothing begins
BEGIN // and behind a description
/1/ // a predicate
{
	trace(8 / 2); // a statement with "strings */ and // itself
	trace("// none");
	trace("x") trace(1); /* error: D_SYNTAX */
}
// the end, without a newline behind it