/* Ifs that are as they should be. */
struct pair { int a; int b; };
this struct pair *p;
BEGIN { if (1) if (2) ; else trace(1); }
BEGIN { this->p = alloca(8); if (this->p) trace(this->p->a); else { } }
string str;
BEGIN /self->x/ { if (str == "a" || curthread) self->x = 1; else self->x = 0; }
BEGIN { if (new = 1) made = "string"; trace(made); trace(new); }
BEGIN { if (1) speculate(1); else commit(2); }
BEGIN { self->s = speculation(); if (self->s) { speculate(self->s); if (1) trace(1); trace(2); } else trace(3); }
BEGIN { if (1) { commit(1); } else { trace(1); exit(0); } }
BEGIN { if (1) @[pid] = count(); else @[tid] = count(); if (0) @q = quantize(1); }
