/*
 * @summary: count the first arguments of functions
 * @output: table
 * @value: calls CALLS count
 * @key: function FUNCTION text
 * @key: argument ARGUMENT text
 * @sort: calls
 * @functions: required
 */
$selected:entry
{
	@calls[probefunc, pystr(pyarg(0))] = count();
}
