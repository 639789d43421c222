/*
 * Arguments: their types for the languages, their locations for the code generator.
 */
#include "probe/probe.h"

#include <string.h>

#include "bpf/ebpf.h"

const char *probe_arg_type(const struct probe_arg *arg)
{
	if (arg->xlate)
		return arg->xlate;
	if (arg->type)
		return arg->type;
	if (arg->is_float)
		return arg->size == 4 ? "float" : "double";
	switch (arg->size) {
	case 1:
		return arg->sign ? "int8_t" : "uint8_t";
	case 2:
		return arg->sign ? "int16_t" : "uint16_t";
	case 4:
		return arg->sign ? "int32_t" : "uint32_t";
	default:
		return arg->sign ? "int64_t" : "uint64_t";
	}
}

/* The constant @v truncated to @width bytes and extended by @sign. */
static int64_t fit(int64_t v, unsigned int width, bool sign)
{
	unsigned int shift = 64 - 8 * width;
	uint64_t up = (uint64_t)v << shift;

	return sign ? (int64_t)up >> shift : (int64_t)(up >> shift);
}

const char *probe_site_arg(const struct site *site, unsigned int n, struct ebpf_operand *out)
{
	const struct arch_operand *op;

	memset(out, 0, sizeof(*out));
	out->width = 8;
	if (n >= site->nargs)
		return "the marker has no such argument";
	op = &site->args[n];
	if (op->why)
		return op->why;
	if (op->sym)
		return "relative to a symbol that the file does not name";
	out->width = op->size;
	out->sign = op->sign && !op->is_float;
	switch (op->loc) {
	case ARCH_LOC_NONE:
		return "an operand that is not understood";
	case ARCH_LOC_CONST:
		out->loc = EBPF_LOC_CONST;
		out->value = fit(op->value, op->size, out->sign);
		break;
	case ARCH_LOC_REG:
		out->loc = EBPF_LOC_REG;
		out->reg_off = op->reg->off;
		break;
	case ARCH_LOC_MEM:
		out->loc = EBPF_LOC_MEM;
		out->value = op->value;
		out->has_base = op->reg != NULL;
		out->reg_off = op->reg ? op->reg->off : 0;
		out->has_index = op->index != NULL;
		out->index_off = op->index ? op->index->off : 0;
		out->scale = op->index ? op->scale : 1;
		break;
	}
	return NULL;
}
