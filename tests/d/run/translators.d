/* Translators of the script's own: by value, by pointer, in inlines with and without parameters, one inside the other. */
struct point { int x, y; };
struct shown { int sum; string text; char letter; struct point *at; };
struct twice { int sum; };

translator struct shown < struct point *P > {
	sum = P->x + P->y;
	text = strjoin(lltostr(P->x), lltostr(P->y));
	letter = P->x > P->y ? 'x' : 'y';
	at = P;
};
translator struct shown < int n > {
	sum = n;
	text = "a number";
};
translator struct twice < struct shown s > {
	sum = 2 * s.sum;
};
translator struct twice < string s > {
	sum = strlen(s);
};

this uintptr_t mem;

inline struct point *origin = (struct point *)this->mem;
inline struct shown *cur = xlate <struct shown *> (origin);
inline struct shown nth[int n] = xlate <struct shown> (n < 3 ? n * 10 : -1);

BEGIN
{
	this->mem = (uintptr_t)alloca(sizeof (struct point));
	printf("%d %s %c %d\n", cur->sum, cur->text, cur->letter, cur->at->y);
	printf("%d %d %s\n", nth[2].sum, nth[3].sum, nth[0].text);
	printf("%d %s\n", xlate <struct shown> (7).sum, xlate <struct shown *> (7)->text);
	printf("%d\n", xlate <struct twice> ("twelve bytes").sum);
	printf("%d %d\n", (*cur).sum, sizeof (struct shown));
	exit(0);
}
/* @@output
0 00 y 0
20 -1 a number
7 a number
12
0 272
*/
