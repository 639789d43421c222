#include "out/printf.h"

#include <errno.h>

#include "out/dialect.h"
#include "out/sink.h"

/* A dynamic width or precision: the next value, which must be an integer. */
static int take_int(struct out_args *a, int64_t *ret)
{
	const struct ir_value *v;

	if (a->next == a->n)
		return -EINVAL;
	v = &a->v[a->next++];
	if (v->type != IR_INT)
		return -EINVAL;
	*ret = v->i > FMT_MAX_WIDTH ? FMT_MAX_WIDTH : v->i < -FMT_MAX_WIDTH ? -FMT_MAX_WIDTH : v->i;
	return 0;
}

int out_spec_of(const struct dialect *d, const struct fmt_conv *c, struct out_args *a, struct out_spec *spec)
{
	int64_t n = c->width;

	*spec = (struct out_spec){ .flags = c->flags, .prec = c->has_prec ? c->prec : -1 };
	if (c->dyn_width && take_int(a, &n))
		return -EINVAL;
	if (n < 0)
		spec->flags |= FMT_LEFT;
	spec->width = (int)(n < 0 ? -n : n);
	if (c->dyn_prec) {
		if (take_int(a, &n))
			return -EINVAL;
		spec->prec = n < 0 ? -1 : (int)n;
	}
	if (!spec->prec && d->zero_is_none)
		spec->prec = -1;
	return 0;
}

int out_printf(struct out_sink *s, const struct fmt *f, const struct ir_value *v, const struct ir_slot *slots,
	       size_t n)
{
	const struct dialect *d = out_dialect(s);
	struct out_args a = { .v = v, .slots = slots, .n = n };
	struct out_spec spec;
	int err;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		out_put(s, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		err = out_spec_of(d, c, &a, &spec);
		if (err)
			return err;
		if (a.next == a.n || (c->flags & FMT_AGG))
			return -EINVAL;
		err = d->conv(s, c, &spec, &a.v[a.next], &a.slots[a.next]);
		if (err)
			return err;
		a.next++;
	}
	return 0;
}
