/* @@stderr: (?s)error in dt_clause_1 .*invalid address \(0x0\).*error in dt_clause_2 .*invalid address \(0x[0-9a-f]+\).*error in dt_clause_3 .*invalid alignment \(0x[0-9a-f]+\).*error in dt_clause_4 .*invalid address \(0x[0-9a-f]+\).*error in dt_clause_6 .*invalid address \(0x[0-9a-f]+\) at */
/* @@program: alloca.py */
/* Stores through pointers, to what alloca() and copyin() gave.  Other addresses are errors of the probe, and what was
   stored before stays. */
struct part { short s; char c; };
struct thing {
	int a;
	unsigned int low : 3, high : 17, rest : 12;
	struct part part;
	short arr[4];
	struct thing *next;
	long long big;
};
struct thing kept;
struct named { int n; string name; char c; };
struct named known;

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->p = (int *)alloca(2 * sizeof (int));
	printf("%d %d:", this->p[0], this->p[1]);
	*this->p = 5;
	this->p[1] = -7;
	*this->p += 10;
	this->p[1] *= 3;
	(*this->p)++;
	printf(" %d %d", *this->p, *(this->p + 1));
	printf(" %d %d", --*this->p, this->p[1]--);
	*(this->p + 1) <<= 2;
	((unsigned char *)this->p)[1] = 0x1ff;
	printf(" %d %d\n", *this->p, this->p[1]);

	this->q = (char *)copyin(arg1, 13);
	this->q[0] = 'T';
	*(this->q + 6) = '-';
	((char *)this->q)[7] -= 32;
	@[stringof(this->q)] = count();
	printf("%s", stringof(this->q));
	this->q[6] = '\0';
	printf(" %s\n", stringof(this->q));
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	printf("not seen\n");
	*(int *)0 = 1;
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->r = (int *)alloca(4);
	*this->r = 1;
	seen = *this->r;
	*(char *)arg1 = 'x';
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->r = (int *)alloca(8);
	*this->r = seen + 1;
	*(int *)((uintptr_t)this->r + 2) = 1;
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->t = (long long *)alloca(8);
	this->t[5000] = 1;
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->s = (struct thing *)alloca(2 * sizeof (struct thing));
	this->s->a = seen;
	this->s->low = 5;
	this->s->high = 0x1ffff;
	this->s->high -= 0x0ff00;
	this->s->rest = 0xabc;
	this->s->low++;
	this->s->part.s = -2;
	this->s->part.c = 'c';
	this->s->arr[2] = 3;
	this->s->arr[this->s->a] = -1;
	this->s->big = 1LL << 40;
	this->s->next = this->s + 1;
	this->s->next->a = 9;
	printf("%d %d %x %x %d %c %d %d %d %d\n", this->s->a, this->s->low, this->s->high, this->s->rest, this->s->part.s,
	    this->s->part.c, this->s->arr[1], this->s->arr[2], this->s->big >> 38, this->s[1].a);
	*this->s->next = *this->s;
	kept = this->s[1];
	kept.part.s = 77;
	this->s->part = kept.part;
	*this->s->next->next = kept;
	printf("%d %x %d %d %d\n", this->s[1].low, this->s[1].rest, this->s[1].part.s, this->s->part.s, this->s->part.c);
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->n = (struct named *)alloca(2 * sizeof (struct named));
	this->n->n = 1;
	this->n->name = "first";
	this->n->c = 'z';
	this->n[1] = this->n[0];
	this->n[1].name = strjoin(this->n->name, "-second");
	known = this->n[1];
	known.n = 4;
	printf("%s %s %d %c %s\n", this->n->name, this->n[1].name, this->n[1].n, this->n[1].c, known.name);
	known.name = copyinstr(arg1);
	*this->n = known;
	*(string *)&this->n[1].name = "x";
	printf("%s %d %s\n", this->n->name, this->n->n, this->n[1].name);
	*(string *)&this->n[50].name = "x";
}
/* @@output
0 0: 16 -21 15 -21 65295 -88
Twelve-Bytes Twelve
1 6 100ff abc -2 c -1 3 4 9
6 abc 77 77 99

  Twelve-Bytes                                                      1
*/
