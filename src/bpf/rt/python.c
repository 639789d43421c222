/*
 * Python's frames, from the interpreter's own structures.
 *
 * The thread is the one in the interpreters' lists whose thread_id is the traced thread's pthread_self().  It need not
 * hold the GIL: a thread that waits in a system call has released it.  Each frame leads to its caller.  The walk ends
 * at a frame whose code object does not have the type of code objects: it is not a Python frame, or its layout is
 * unknown.
 */
#include "rt.h"

#include "stack.h"

static void *(*const rt_lookup)(void *map, const void *key) = (void *)1;	/* map_lookup_elem */
static long (*const rt_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const rt_read_user)(void *dst, u32 size, u64 src) = (void *)112;	/* probe_read_user */
static long (*const rt_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;	/* ringbuf_output */

#define PY(C) ((const struct abi_python *)(C)->known)
#define INLINE static inline __attribute__((always_inline))

enum { SHIM_OWNER = 3 };		/* FRAME_OWNED_BY_CSTACK, FRAME_OWNED_BY_INTERPRETER and later ones */
enum { TAG_BITS = 7 };			/* of a _PyStackRef (3.14) */
enum { STATE_COMPACT = 0x20, STATE_ASCII = 0x40 };
#define NAME_INIT 0x5f5f74696e695f5full	/* "__init__" */

INLINE u64 word(u64 addr)
{
	u64 v = 0;

	rt_read_user(&v, 8, addr);
	return v;
}

INLINE u64 mix(u64 hash, u64 v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

static long find_thread(u32 k, struct stack_walk *c)
{
	struct stack_work *w = c->work;

	if (!w->thread) {
		w->interp = word(w->interp + PY(c)->next_interp);
		if (!w->interp)
			return 1;
		w->thread = word(w->interp + PY(c)->threads);
		return 0;
	}
	if (w->self - word(w->thread + PY(c)->thread_id) < w->self_room)
		return 1;
	w->thread = word(w->thread + PY(c)->next_thread);
	return 0;
}

/* Copy the characters of the str at @ADDR to @TEXT, @MAX bytes at most, and describe them in @FIELD. */
#define TEXT(FIELD, TEXT, MAX, ADDR)									\
	do {												\
		u64 addr_ = (ADDR), length_ = word(addr_ + PY(c)->length), state_ = word(addr_ + PY(c)->state);	\
		u64 kind_ = state_ >> 2 & 7, bytes_ = length_ * kind_;					\
													\
		w->code.FIELD.length = (u32)length_;							\
		w->code.FIELD.kind = (u32)kind_;							\
		if (bytes_ > (MAX) || length_ > (MAX))							\
			bytes_ = (MAX);									\
		rt_opaque(bytes_);									\
		addr_ += state_ & STATE_ASCII ? PY(c)->ascii_data : PY(c)->other_data;			\
		w->code.FIELD.addr = addr_;								\
		if (!(state_ & STATE_COMPACT) || bytes_ > (MAX) || rt_read_user(w->code.TEXT, (u32)bytes_, addr_)) \
			bytes_ = 0;									\
		w->code.FIELD.bytes = (u32)bytes_;							\
	} while (0)

static __attribute__((noinline)) u64 tell_code(struct stack_walk *c, u64 number, u64 code)
{
	struct stack_work *w = c->work;
	u64 table, n;

	w->code.hdr = w->hdr;
	w->code.hdr.rec = ABI_REC_CODE;
	w->code.number = number;
	w->code.version = PY(c)->version;
	w->code.line = *(u32 *)(w->code_bytes + (PY(c)->line & 0xff));
	TEXT(file, file_text, ABI_CODE_FILE, *(u64 *)(w->code_bytes + (PY(c)->file & 0xff)));
	TEXT(name, name_text, ABI_CODE_NAME, *(u64 *)(w->code_bytes + (PY(c)->name & 0xff)));
	table = *(u64 *)(w->code_bytes + (PY(c)->table & 0xff));
	n = word(table + PY(c)->bytes_size);
	w->code.table.addr = table + PY(c)->bytes_data;
	w->code.table.length = (u32)n;
	w->code.table.kind = 1;
	if (n > ABI_CODE_TABLE)
		n = ABI_CODE_TABLE;
	rt_opaque(n);
	if (n > ABI_CODE_TABLE || rt_read_user(w->code.table_bytes, (u32)n, table + PY(c)->bytes_data))
		n = 0;
	w->code.table.bytes = (u32)n;
	n = (n + 7) & ~7ull;
	if (n > ABI_CODE_TABLE)
		return 1;
	n += __builtin_offsetof(struct abi_code, table_bytes);
	w->code.hdr.size = (u32)n;
	if (rt_output(c->out, &w->code, n, 0))
		return 1;
	rt_update(c->map, &number, &number, 0);
	return 0;
}

/*
 * The frame at @addr is no Python frame but a variable of the native function that runs those before it: add the number
 * of that function's frame.
 */
INLINE void tell_call(struct stack_work *w, u64 addr)
{
	u64 at = 0, pos = w->pos;

#pragma unroll
	for (u32 step = (STACK_ADDRS + 1) / 2; step; step /= 2) {
		at += step & reaches(w->sps[(at + step) & STACK_ADDRS], addr) & reaches(at + step + 1, w->addrs);
		rt_opaque(at);
	}
	if (!w->unwound || !w->addrs || pos > STACK_WORDS - 2)
		return;
	w->words[pos] = 0;
	w->words[pos + 1] = at | (u64)ABI_PYFRAME_CALL << 32;
	w->pos = pos + 2;
}

/*
 * Is this the code object that the interpreter puts, from 3.12 on, between the call of a class and its __init__()?  Its
 * file name is its own name.
 */
INLINE u64 is_hidden(struct stack_walk *c)
{
	struct stack_work *w = c->work;
	u64 file = *(u64 *)(w->code_bytes + (PY(c)->file & 0xff)), name = *(u64 *)(w->code_bytes + (PY(c)->name & 0xff));

	return PY(c)->runs == ABI_PYTHON_SHIM && file == name && word(name + PY(c)->ascii_data) == NAME_INIT;
}

static long next_frame(u32 k, struct stack_walk *c)
{
	struct stack_work *w = c->work;
	u64 frame = w->frame, size = PY(c)->frame_size, code, number, instr, pos;

	if (!frame || w->n >= w->most || size > ABI_PYTHON_FRAME)
		return 1;
	if (rt_read_user(w->frame_bytes, (u32)size, frame))
		return 1;
	code = *(u64 *)(w->frame_bytes + (PY(c)->code & 0x7f)) & ~(u64)TAG_BITS;
	w->frame = *(u64 *)(w->frame_bytes + (PY(c)->back & 0x7f));
	if (PY(c)->runs == ABI_PYTHON_SHIM && w->frame_bytes[PY(c)->owner & 0x7f] >= SHIM_OWNER) {
		w->first = ABI_PYFRAME_FIRST;
		tell_call(w, frame);
		return 0;
	}
	if (rt_read_user(w->code_bytes, ABI_PYTHON_CODE, code) || *(u64 *)(w->code_bytes + (PY(c)->type & 0x1f)) != PY(c)->code_type)
		return 1;
	if (is_hidden(c))
		return 0;
	if (PY(c)->lasti_scale)
		instr = (u64)(s64)*(int *)(w->frame_bytes + (PY(c)->instr & 0x7f)) * PY(c)->lasti_scale;
	else
		instr = *(u64 *)(w->frame_bytes + (PY(c)->instr & 0x7f)) - (code + PY(c)->first_instr);
	number = mix(mix(w->hdr.pid, code), *(u32 *)(w->code_bytes + (PY(c)->line & 0xff)));
	number = mix(mix(number, *(u64 *)(w->code_bytes + (PY(c)->file & 0xff))),
		     *(u64 *)(w->code_bytes + (PY(c)->name & 0xff)));
	number = mix(number, *(u64 *)(w->code_bytes + (PY(c)->table & 0xff)));
	if (!rt_lookup(c->map, &number))
		tell_code(c, number, code);
	instr = w->lines ? (u32)instr | w->first << 32 : (u32)-1;
	pos = w->pos;
	if (pos > STACK_WORDS - 2)
		return 1;
	w->words[pos] = number;
	w->words[pos + 1] = instr;
	w->pos = pos + 2;
	w->hash = mix(mix(w->hash, number), instr);
	w->n++;
	w->first = PY(c)->runs == ABI_PYTHON_EACH ||
		   (PY(c)->runs == ABI_PYTHON_MARKED && w->frame_bytes[PY(c)->owner & 0x7f]);
	return 0;
}

RT s64 rt_python(struct stack_walk *c)
{
	struct stack_work *w = c->work;
	u64 addr = 0;

	w->hash = w->n = 0;
	w->first = ABI_PYFRAME_FIRST;
	w->interp = word(PY(c)->runtime + PY(c)->interp);
	if (!w->interp)
		return 0;
	w->thread = word(w->interp + PY(c)->threads);
	rt_loop(STACK_THREADS, find_thread, c, 0);
	if (!w->thread || w->self - word(w->thread + PY(c)->thread_id) >= w->self_room)
		return 0;
	addr = word(w->thread + PY(c)->frame);
	if (addr && PY(c)->cframe_frame != ABI_PYTHON_NONE)
		addr = word(addr + PY(c)->cframe_frame);
	w->frame = addr;
	rt_loop(2 * STACK_FRAMES, next_frame, c, 0);
	return 0;
}
