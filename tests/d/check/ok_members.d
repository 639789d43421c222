struct inner {
	char name[16];
	short a[4];
};

struct outer {
	int flags : 3;
	unsigned int kind : 5;
	struct inner in;
	struct outer *next;
	union {
		int i;
		uint64_t u;
	} value;
};

BEGIN
{
	this->p = (struct outer *)copyin(arg0, sizeof (struct outer));
	trace(this->p->flags + this->p->kind);
	trace(this->p->in.a[2]);
	trace(stringof(this->p->in.name));
	trace(this->p->next->value.u);
	trace((uint64_t)&this->p->in);
	trace(sizeof (this->p->in) + offsetof(struct outer, next));
}
