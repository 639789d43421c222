BEGIN { self->spec = speculation(); speculate(self->spec); printf("%d", 1); trace(2); n++; }
BEGIN /self->spec/ { commit(self->spec); self->spec = 0; }
BEGIN { discard(self->spec); trace(1); }
