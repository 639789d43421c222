/* A translator computes the members of one structure from another: xlate makes a value of it.
   @@program: ../pointers/pair.py
   @@python: 3.9 */
struct raw { int a; int b; };
typedef struct nice { int sum; string text; } nice_t;
translator nice_t < struct raw *R > {
	sum = R->a + R->b;
	text = R->a > R->b ? "more" : "less";
};
syscall::write:entry
/pid == $target && arg2 == 8/
{
	this->r = (struct raw *)copyin(arg1, 8);
	printf("%d %s", xlate <nice_t> (this->r).sum, xlate <nice_t> (this->r).text);
}
/* @@output
2037972997 less
*/
