/* Names may be long, and have digits and underscores. */
BEGIN
{
	a_very_long_name_of_a_variable_that_goes_on_1 = 5;
	_x = 6;
	printf("%d %d", a_very_long_name_of_a_variable_that_goes_on_1, _x);
	exit(0);
}
/* @@output
5 6
*/
