BEGIN { self->x = 1; this->y = self->x; self->a[1, "b"] = 2; self->x++; }
