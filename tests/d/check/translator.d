struct src { int a; };
struct dst { int b; string s; };
struct other { int c; };

translator struct dst < struct src *S > {
	b = S->a;
};
translator struct dst < struct src *again > {	/* error: D_XLATE_REDECL */
	b = 0;
};
translator struct dst < int n > {
	b = "text";	/* error: D_XLATE_INCOMPAT */
};
translator struct dst < short n > {
	b = nobody;	/* error: D_IDENT_UNDEF */
};
inline struct dst *first = xlate <struct dst *> ((struct src *)alloca(4));

BEGIN
{
	trace(xlate <struct other> ((struct src *)alloca(4)).c);	/* error: D_XLATE_NONE */
	trace(xlate <int> (4));		/* error: D_XLATE_SOU */
	trace(first->b);
	trace(first->s);		/* error: D_XLATE_NOCONV */
	trace(first->nosuch);		/* error: D_TYPE_MEMBER */
	trace(first.b);			/* error: D_OP_SOU */
	this->p = first;		/* error: D_OP_DYN */
	first->b = 1;			/* error: D_OP_WRITE */
	trace(&first->b);		/* error: D_ADDROF_LVAL */
}
inline int of[struct dst *p] = p->b;
translator struct other < struct dst *p > {
	c = p->b;
};
BEGIN
{
	trace(((struct dst *)first)->b);	/* error: D_OP_DYN */
	trace((first + 1)->b);			/* error: D_OP_DYN */
	trace(first[0].b);			/* error: D_OP_DYN */
	trace((arg0 ? first : first)->b);	/* error: D_OP_DYN */
	trace(of[first]);			/* error: D_OP_DYN */
	trace(xlate <struct other *> (first)->c);	/* error: D_OP_DYN */
	trace((uintptr_t)first);
}
