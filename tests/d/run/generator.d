/* @@python: 3.9
 * Entry and return of a generator nest like brackets, resumption by resumption, as sys.setprofile reports them:
 * generator.py prints what that says with the argument "profile".
 */
self int depth;
python$target:::function-entry
/copyinstr(arg1) == "numbers" || copyinstr(arg1) == "consume"/
{
	printf("%*s> %s:%d\n", 2 * self->depth++, "", copyinstr(arg1), arg2);
}
python$target:::function-return
/copyinstr(arg1) == "numbers" || copyinstr(arg1) == "consume"/
{
	printf("%*s< %s:%d\n", 2 * --self->depth, "", copyinstr(arg1), arg2);
}
