/*
 * Storage: structs, unions and arrays, in memory and as variables.
 *
 * A variable that holds one is divided into words of 8 bytes.  In a clause-local variable each word is a variable of
 * the IR; otherwise the words are elements of a map, with the word's number as the last key: words never assigned are
 * 0, words assigned 0 take no room, and an array may have any size.  Members that are strings are stored separately:
 * in a map by their offset, or, if clause-local, in variables.
 *
 * The value of such an object is the address of a copy in the clause's scratch memory.
 *
 * Guide: "Structs and Unions", "Pointers and Arrays".
 */
#include "d/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "d/check.h"

/* --- where they are ---------------------------------------------------------------------------------- */

static struct ir_slot word_slot(void)
{
	return (struct ir_slot){ IR_INT, 8, false, 0 };
}

/* The map with @id's words, or with its strings. */
static struct ir_map *map_of(struct lower *l, struct d_ident *id, bool strings)
{
	struct ir_map **m = strings ? &id->strings : &id->map;

	if (*m)
		return *m;
	*m = ir_map_new(l->prog, id->name, id->space == SPACE_SELF ? IR_THREAD : IR_GLOBAL);
	(*m)->nkeys = lower_key_slots(id, (*m)->keys) + 1;
	(*m)->keys[(*m)->nkeys - 1] = word_slot();
	(*m)->value = strings ? (struct ir_slot){ .type = IR_STR } : word_slot();
	(*m)->zero_frees = true;
	return *m;
}

/* The variable for word @n of the clause-local @id, or for its string at byte @n. */
static struct ir_var *var_of(struct lower *l, struct d_ident *id, uint64_t n, bool string)
{
	uint64_t words = (type_size(id->type) + 7) / 8;
	struct ir_slot slot = string ? (struct ir_slot){ .type = IR_STR } : word_slot();
	struct ir_var **v;

	if (!id->words)
		id->words = arena_alloc(l->prog->arena, 2 * words * sizeof(*id->words));
	n = string ? n / 8 : n;
	n = n < words ? n : words - 1;	/* debug information may give a wrong offset */
	v = &id->words[string ? words + n : n];
	if (!*v)
		*v = ir_var_new(l->prog, arena_printf(l->prog->arena, "%s.%llu", id->name, (unsigned long long)n), IR_CLAUSE,
				slot);
	return *v;
}

static ir_reg plus(struct lower *l, ir_reg a, uint64_t n)
{
	return n ? ir_op2(&l->b, IR_ADD, a, ir_const(&l->b, (int64_t)n)) : a;
}

/* Step to a[i] of an array variable: adds i times the element's size; a fault if there is no such element. */
static void step_into(struct lower *l, struct storage *o, const struct type *array, struct d_node *index)
{
	uint64_t size = type_stride(type_target(array)), count = type_strip(array)->count;
	struct ir_block *good, *bad;
	int64_t v;
	ir_reg i;

	if (d_const(l->check->prog, index, &v)) {
		o->off += (uint64_t)v * size;
		return;
	}
	good = ir_block_new(&l->b);
	bad = ir_block_new(&l->b);
	i = lower_convert(l, lower_expr(l, index), index->type, l->check->t_int64);
	ir_br(&l->b, ir_op2(&l->b, IR_ULT, i, ir_const(&l->b, (int64_t)count)), good, bad);
	ir_at(&l->b, bad);
	ir_fault(&l->b, ABI_FAULT_BADINDEX, i);
	ir_at(&l->b, good);
	if (size > 1)
		i = ir_op2(&l->b, IR_MUL, i, ir_const(&l->b, (int64_t)size));
	o->dyn = o->dyn == IR_NO_REG ? i : ir_op2(&l->b, IR_ADD, o->dyn, i);
}

void lower_storage(struct lower *l, struct d_node *n, struct storage *o)
{
	if (!check_root(n)) {
		memset(o, 0, sizeof(*o));
		o->dyn = IR_NO_REG;
		o->user = n->user;
		o->addr = lower_addr(l, n);
		return;
	}
	if (n->kind == D_NAME || n->ident) {
		memset(o, 0, sizeof(*o));
		o->dyn = IR_NO_REG;
		o->id = n->ident;
		if (n->kind == D_INDEX)
			lower_keys(l, n->ident, n, o->keys);
	} else if (n->kind == D_MEMBER) {
		lower_storage(l, n->base, o);
		o->off += n->value / 8;
	} else {
		lower_storage(l, n->base, o);
		step_into(l, o, n->base->type, n->args[0]);
	}
}

struct storage lower_part(struct lower *l, const struct storage *o, uint64_t bytes)
{
	struct storage part = *o;

	if (o->id)
		part.off += bytes;
	else
		part.addr = plus(l, o->addr, bytes);
	return part;
}

/* --- words ------------------------------------------------------------------------------------------- */

/* The number of the word that contains byte @off + dyn. */
static ir_reg word_number(struct lower *l, const struct storage *o, uint64_t off)
{
	if (o->dyn == IR_NO_REG)
		return ir_const(&l->b, (int64_t)(off / 8));
	return ir_op2(&l->b, IR_SHR, plus(l, o->dyn, off), ir_const(&l->b, 3));
}

/* The word that contains byte @off + dyn. */
static ir_reg get_word(struct lower *l, const struct storage *o, uint64_t off)
{
	uint64_t words = (type_size(o->id->type) + 7) / 8;
	ir_reg keys[IR_MAX_KEYS], n, v;
	struct ir_block *done;

	if (o->id->space != SPACE_THIS) {
		memcpy(keys, o->keys, sizeof(keys));
		keys[lower_key_slots(o->id, NULL)] = word_number(l, o, off);
		return ir_mld(&l->b, map_of(l, o->id, false), keys);
	}
	if (o->dyn == IR_NO_REG)
		return ir_vld(&l->b, var_of(l, o->id, off / 8, false));
	n = word_number(l, o, off);
	v = ir_reg_new(&l->b, IR_INT);
	done = ir_block_new(&l->b);
	for (uint64_t i = 0; i < words; i++) {
		struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b);

		ir_br(&l->b, ir_op2(&l->b, IR_EQ, n, ir_const(&l->b, (int64_t)i)), yes, no);
		ir_at(&l->b, yes);
		ir_mov(&l->b, v, ir_vld(&l->b, var_of(l, o->id, i, false)));
		ir_jmp(&l->b, done);
		ir_at(&l->b, no);
	}
	ir_mov(&l->b, v, ir_const(&l->b, 0));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return v;
}

static void put_word(struct lower *l, const struct storage *o, uint64_t off, ir_reg v)
{
	uint64_t words = (type_size(o->id->type) + 7) / 8;
	ir_reg keys[IR_MAX_KEYS], n;
	struct ir_block *done;

	if (o->id->space != SPACE_THIS) {
		memcpy(keys, o->keys, sizeof(keys));
		keys[lower_key_slots(o->id, NULL)] = word_number(l, o, off);
		ir_mst(&l->b, map_of(l, o->id, false), v, keys);
		return;
	}
	if (o->dyn == IR_NO_REG) {
		ir_vst(&l->b, var_of(l, o->id, off / 8, false), v);
		return;
	}
	n = word_number(l, o, off);
	done = ir_block_new(&l->b);
	for (uint64_t i = 0; i < words; i++) {
		struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b);

		ir_br(&l->b, ir_op2(&l->b, IR_EQ, n, ir_const(&l->b, (int64_t)i)), yes, no);
		ir_at(&l->b, yes);
		ir_vst(&l->b, var_of(l, o->id, i, false), v);
		ir_jmp(&l->b, done);
		ir_at(&l->b, no);
	}
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
}

/* The bit of its word at which byte @off + dyn begins. */
static ir_reg shift_of(struct lower *l, const struct storage *o, uint64_t off)
{
	ir_reg r;

	if (o->dyn == IR_NO_REG)
		return ir_const(&l->b, (int64_t)(off % 8 * 8));
	r = ir_op2(&l->b, IR_AND, plus(l, o->dyn, off), ir_const(&l->b, 7));
	return ir_op2(&l->b, IR_SHL, r, ir_const(&l->b, 3));
}

/* --- scalars ----------------------------------------------------------------------------------------- */

/* @bits, 1 to 64, from bit @bit of the object on. */
static ir_reg get_bits(struct lower *l, const struct storage *o, uint64_t bit, unsigned int bits, bool sign)
{
	uint64_t off = o->off + bit / 8;
	unsigned int in_byte = bit % 8, in_word = (unsigned int)(off % 8 * 8 + in_byte);
	ir_reg v, sh;

	if (o->dyn == IR_NO_REG && in_word + bits > 64) {	/* an unaligned value may span two words */
		v = ir_op2(&l->b, IR_SHR, get_word(l, o, off), ir_const(&l->b, in_word));
		sh = ir_op2(&l->b, IR_SHL, get_word(l, o, off + 8), ir_const(&l->b, 64 - in_word));
		v = ir_op2(&l->b, IR_OR, v, sh);
	} else {
		v = get_word(l, o, off);
		sh = plus(l, shift_of(l, o, off), in_byte);
		if (o->dyn != IR_NO_REG || in_word)
			v = ir_op2(&l->b, IR_SHR, v, sh);
	}
	if (bits == 64)
		return v;
	if (bits == 8 || bits == 16 || bits == 32)
		return ir_ext(&l->b, v, bits / 8, sign);
	v = ir_op2(&l->b, IR_SHL, v, ir_const(&l->b, 64 - bits));
	return ir_op2(&l->b, sign ? IR_SAR : IR_SHR, v, ir_const(&l->b, 64 - bits));
}

/* The part of put_bits within one word. */
static void put_in_word(struct lower *l, const struct storage *o, uint64_t off, ir_reg sh, unsigned int bits, ir_reg v)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
	ir_reg m, old;

	if (bits == 64) {
		put_word(l, o, off, v);
		return;
	}
	m = ir_op2(&l->b, IR_SHL, ir_const(&l->b, (int64_t)mask), sh);
	old = ir_op2(&l->b, IR_AND, get_word(l, o, off), ir_op1(&l->b, IR_NOT, m));
	v = ir_op2(&l->b, IR_AND, v, ir_const(&l->b, (int64_t)mask));
	put_word(l, o, off, ir_op2(&l->b, IR_OR, old, ir_op2(&l->b, IR_SHL, v, sh)));
}

static void put_bits(struct lower *l, const struct storage *o, uint64_t bit, unsigned int bits, ir_reg v)
{
	uint64_t off = o->off + bit / 8;
	unsigned int in_word = (unsigned int)(off % 8 * 8 + bit % 8), low;

	if (o->dyn != IR_NO_REG || in_word + bits <= 64) {
		put_in_word(l, o, off, plus(l, shift_of(l, o, off), bit % 8), bits, v);
		return;
	}
	low = 64 - in_word;
	put_in_word(l, o, off, ir_const(&l->b, in_word), low, v);
	put_in_word(l, o, off + 8, ir_const(&l->b, 0), bits - low, ir_op2(&l->b, IR_SHR, v, ir_const(&l->b, low)));
}

ir_reg lower_get(struct lower *l, const struct storage *o, const struct type *t, uint64_t bit, unsigned int bits)
{
	struct ir_slot slot = type_slot(t);

	if (o->id)
		return get_bits(l, o, bit, bits ? bits : 8u * slot.width, slot.sign);
	if (!o->user)
		return lower_load_at(l, plus(l, o->addr, bit / 8), t, bit % 8, bits);
	if (bits)
		return lower_bits(l, IR_ULOAD, plus(l, o->addr, bit / 8), bit % 8, bits, slot.sign);
	return ir_load(&l->b, IR_ULOAD, plus(l, o->addr, bit / 8), slot.width, slot.sign);
}

void lower_put(struct lower *l, const struct storage *o, const struct type *t, uint64_t bit, unsigned int bits, ir_reg v)
{
	if (!o->id)
		lower_store_at(l, plus(l, o->addr, bit / 8), t, bit % 8, bits, v);
	else
		put_bits(l, o, bit, bits ? bits : 8u * type_slot(t).width, v);
}

bool lower_adds(const struct storage *o, unsigned int bits)
{
	return o->id && o->id->space == SPACE_GLOBAL && bits == 64;
}

ir_reg lower_add(struct lower *l, const struct storage *o, uint64_t bit, ir_reg v)
{
	ir_reg keys[IR_MAX_KEYS];

	memcpy(keys, o->keys, sizeof(keys));
	keys[lower_key_slots(o->id, NULL)] = word_number(l, o, o->off + bit / 8);
	return ir_madd(&l->b, map_of(l, o->id, false), v, keys);
}

/* --- strings ----------------------------------------------------------------------------------------- */

ir_reg lower_get_string(struct lower *l, const struct storage *o)
{
	ir_reg keys[IR_MAX_KEYS];

	if (!o->id)
		return lower_string_at(l, o->addr, o->user);
	if (o->id->space == SPACE_THIS) {
		if (o->dyn != IR_NO_REG)
			check_unsupported(l->check, l->b.pos, "a string in a clause-local array, by an index that varies",
					  "use a thread-local array: self->");
		return ir_vld(&l->b, var_of(l, o->id, o->off, true));
	}
	memcpy(keys, o->keys, sizeof(keys));
	keys[lower_key_slots(o->id, NULL)] = ir_const(&l->b, (int64_t)o->off);
	if (o->dyn != IR_NO_REG)
		keys[lower_key_slots(o->id, NULL)] = plus(l, o->dyn, o->off);
	return ir_mld(&l->b, map_of(l, o->id, true), keys);
}

void lower_put_string(struct lower *l, const struct storage *o, ir_reg v)
{
	ir_reg keys[IR_MAX_KEYS];

	if (!o->id && l->prog->strsize > type_stride(type_basic(l->check->types, TYPE_B_STRING))) {
		check_unsupported(l->check, l->b.pos, "storing a string through a pointer, with a strsize of more than 256",
				  "lower strsize, or store it in a variable");
		return;
	}
	if (!o->id) {
		keys[0] = o->addr;
		keys[1] = v;
		ir_call(&l->b, IR_FN_POKESTR, keys, 2);
		return;
	}
	if (o->id->space == SPACE_THIS) {
		if (o->dyn != IR_NO_REG)
			check_unsupported(l->check, l->b.pos, "a string in a clause-local array, by an index that varies",
					  "use a thread-local array: self->");
		ir_vst(&l->b, var_of(l, o->id, o->off, true), v);
		return;
	}
	memcpy(keys, o->keys, sizeof(keys));
	keys[lower_key_slots(o->id, NULL)] = ir_const(&l->b, (int64_t)o->off);
	if (o->dyn != IR_NO_REG)
		keys[lower_key_slots(o->id, NULL)] = plus(l, o->dyn, o->off);
	ir_mst(&l->b, map_of(l, o->id, true), v, keys);
}

/* --- copies ------------------------------------------------------------------------------------------ */

/* Load the eight bytes at @off of @o, fewer at the end of its @size, at most @unit at a time. */
static ir_reg get_eight(struct lower *l, const struct storage *o, uint64_t off, uint64_t size, unsigned int unit)
{
	const struct types *ts = l->check->types;
	ir_reg v = IR_NO_REG, part;
	unsigned int width;

	for (uint64_t at = 0; at < 8 && off + at < size; at += width) {
		uint64_t left = size - off - at;

		width = left >= 8 && !at ? 8 : left >= 4 && at % 4 == 0 ? 4 : left >= 2 && at % 2 == 0 ? 2 : 1;
		width = width < unit ? width : unit;
		part = lower_get(l, o, type_int(ts, width, false), (off + at) * 8, 0);
		if (at)
			part = ir_op2(&l->b, IR_SHL, part, ir_const(&l->b, (int64_t)(at * 8)));
		v = at ? ir_op2(&l->b, IR_OR, v, part) : part;
	}
	return v;
}

/*
 * How many bytes of an object of @t can be copied at a time: where it begins in a word may be known only from its
 * alignment.
 */
static unsigned int unit_of(const struct storage *o, const struct type *t)
{
	uint32_t align = type_align(t);

	return (o->id && o->dyn == IR_NO_REG) || align >= 8 ? 8 : align;
}

static void copy_bytes(struct lower *l, const struct storage *to, const struct storage *from, const struct type *t)
{
	unsigned int unit = unit_of(to, t), part;
	uint64_t size = type_size(t);

	while (!to->id && size % unit)
		unit /= 2;
	for (uint64_t off = 0; off < size; off += unit) {
		part = (unsigned int)(size - off < unit ? size - off : unit);
		lower_put(l, to, type_int(l->check->types, part, false), off * 8, to->id ? 8 * part : 0,
			  get_eight(l, from, off, off + part, unit_of(from, t)));
	}
}

/* Copy an object of type @t. */
static void lower_copy(struct lower *l, const struct storage *to, const struct storage *from, const struct type *t)
{
	const struct type *base = type_strip(t);

	if (!to->id && !from->id) {
		const ir_reg args[] = { from->addr, ir_const(&l->b, (int64_t)type_size(t)), to->addr };

		ir_call(&l->b, from->user ? IR_FN_COPYINTO : IR_FN_BCOPY, args, 3);
	} else if (!type_has_string(t)) {
		copy_bytes(l, to, from, t);
	} else if (base->kind == TYPE_STRING) {
		lower_put_string(l, to, lower_get_string(l, from));
	} else if (base->kind == TYPE_ARRAY) {
		for (uint64_t i = 0; i < base->count; i++) {
			struct storage x = lower_part(l, to, i * type_stride(base->to));
			struct storage y = lower_part(l, from, i * type_stride(base->to));

			lower_copy(l, &x, &y, base->to);
		}
	} else {
		type_load(base);
		for (size_t i = 0; i < base->nmembers; i++) {
			const struct type_member *m = &base->members[i];
			struct storage x = lower_part(l, to, m->bit_off / 8), y = lower_part(l, from, m->bit_off / 8);

			if (m->bits)
				lower_put(l, &x, m->type, m->bit_off % 8, m->bits,
					  lower_get(l, &y, m->type, m->bit_off % 8, m->bits));
			else
				lower_copy(l, &x, &y, m->type);
		}
	}
}

/* Store the members that the translator has; the others become 0. */
static void copy_xlated(struct lower *l, const struct storage *to, const struct xlated *x, const struct type *t,
			struct src_pos pos)
{
	const struct type *base = type_strip(t);

	type_load(base);
	for (size_t i = 0; i < base->nmembers; i++) {
		const struct type_member *m = &base->members[i];
		struct storage at = lower_part(l, to, m->bit_off / 8);
		struct d_node *n = check_xlated_node(l->check, x, m->name, pos);

		if (m->name && type_is_string(m->type))
			lower_put_string(l, &at, n ? lower_expr(l, n) : ir_strc(&l->b, ""));
		else if (n && type_is_sou(m->type))
			lower_assign_storage(l, &at, n->type, n);
		else if (n && !type_is_scalar(m->type))
			check_unsupported(l->check, pos, "a translated structure as a whole that has an array", "name its members");
		else if (type_is_scalar(m->type))
			lower_put(l, &at, m->type, m->bit_off % 8, m->bits, n ? lower_as(l, n, m->type) : ir_const(&l->b, 0));
	}
}

/* Clear an object of type @t. */
static void lower_clear(struct lower *l, const struct storage *to, const struct type *t)
{
	const struct type *base = type_strip(t);
	uint64_t size = type_size(t);

	if (!type_has_string(t)) {
		for (uint64_t off = 0; off < size; off += 8) {
			unsigned int part = (unsigned int)(size - off < 8 ? size - off : 8);

			lower_put(l, to, type_int(l->check->types, part, false), off * 8, 8 * part, ir_const(&l->b, 0));
		}
	} else if (base->kind == TYPE_STRING) {
		lower_put_string(l, to, ir_strc(&l->b, ""));
	} else {
		type_load(base);
		for (size_t i = 0; i < (base->kind == TYPE_ARRAY ? base->count : base->nmembers); i++) {
			bool array = base->kind == TYPE_ARRAY;
			struct storage x = lower_part(l, to, array ? i * type_stride(base->to) : base->members[i].bit_off / 8);

			lower_clear(l, &x, array ? base->to : base->members[i].type);
		}
	}
}

void lower_assign_storage(struct lower *l, const struct storage *to, const struct type *t, struct d_node *from)
{
	struct xlated x = { 0 };
	struct storage o;

	if (type_is_integer(from->type)) {
		lower_clear(l, to, t);
		return;
	}
	if (check_xlated(from, &x)) {
		copy_xlated(l, to, &x, from->type, from->pos);
		return;
	}
	lower_storage(l, from, &o);
	lower_copy(l, to, &o, from->type);
}

/* --- as values --------------------------------------------------------------------------------------- */

ir_reg lower_in_memory(struct lower *l, const struct storage *o, const struct type *t)
{
	uint64_t size = type_size(t);
	ir_reg n = ir_const(&l->b, (int64_t)((size + 7) / 8 * 8 + 8)), mem;

	if (!o->id)
		return o->addr;
	if (type_has_string(t)) {
		check_unsupported(l->check, l->b.pos, "a structure with strings here", "name its members");
		return ir_const(&l->b, 0);
	}
	mem = ir_call(&l->b, IR_FN_ALLOCA, &n, 1);
	for (uint64_t off = 0; off < size; off += 8) {
		ir_reg at = plus(l, mem, off);

		lower_store(l, at, get_eight(l, o, off, size, unit_of(o, t)), 8);
	}
	return mem;		/* with a 0 behind it: an array of char may be used as a string */
}
