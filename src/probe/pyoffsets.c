#include "probe/pyoffsets.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "abi/cpython.h"

static const struct {
	uint16_t version;
	struct abi_python python;
} layouts[] = {
#define LAYOUT(VERSION, INTERP, NEXT_INTERP, THREADS, NEXT_THREAD, THREAD_ID, FRAME, CFRAME_FRAME, BACK, CODE, INSTR,	\
	       LASTI_SCALE, OWNER, RUNS, FRAME_SIZE, FIRST_INSTR, FILE, NAME, TABLE, LINE, ASCII, OTHER)		\
	{ VERSION,												\
	  { .version = (VERSION), .runs = (RUNS), .interp = (INTERP), .next_interp = (NEXT_INTERP), .threads = (THREADS),	\
	    .next_thread = (NEXT_THREAD), .thread_id = (THREAD_ID), .frame = (FRAME), .cframe_frame = (CFRAME_FRAME),	\
	    .back = (BACK), .code = (CODE), .instr = (INSTR), .lasti_scale = (LASTI_SCALE), .owner = (OWNER),		\
	    .frame_size = (FRAME_SIZE), .first_instr = (FIRST_INSTR), .file = (FILE), .name = (NAME), .table = (TABLE),	\
	    .line = (LINE), .type = 8, .length = 16, .state = 32, .ascii_data = (ASCII), .other_data = (OTHER), .bytes_size = 16,	\
	    .bytes_data = 32 } },
#define PUBLISHED(...)
#define GIL(...)
#define SLOTS(...)
#define PUBLISHED_GIL(...)
#include "probe/pyoffsets.def"
#undef PUBLISHED_GIL
#undef SLOTS
#undef GIL
#undef PUBLISHED
#undef LAYOUT
};

static const struct published {
	uint16_t version;
	uint8_t thread, thread_id, frame, code, object, bytes, str;
} published[] = {
#define LAYOUT(...)
#define PUBLISHED(...) { __VA_ARGS__ },
#define GIL(...)
#define SLOTS(...)
#define PUBLISHED_GIL(...)
#include "probe/pyoffsets.def"
#undef PUBLISHED_GIL
#undef SLOTS
#undef GIL
#undef PUBLISHED
#undef LAYOUT
};

/* Words of _Py_DebugOffsets. */
enum { VERSION = 1, FREE_THREADED = 2, INTERP = 5, NEXT_INTERP = 8, THREADS = 9 };

/*
 * The layouts of str and bytes behind the object's type, the same since 3.12.  In a free-threaded build the type is
 * FREE_MORE further behind.
 */
enum { TYPE_AT = 8, LENGTH_AT = 16, STATE_AT = 32, ASCII_AT = 40, OTHER_AT = 56, BYTES_AT = 32, FREE_MORE = 16 };

static uint32_t more_of(const uint64_t *w)
{
	return w[FREE_THREADED] ? FREE_MORE : 0;
}

/* Are all offsets plausible? */
static bool makes_sense(const uint64_t *w, const struct published *p)
{
	uint64_t thread = w[p->thread], frame = w[p->frame], code = w[p->code], more = more_of(w);

	if (w[p->object + 1] != TYPE_AT + more || w[p->bytes + 1] != LENGTH_AT + more || w[p->bytes + 2] != BYTES_AT + more ||
	    w[p->str + 1] != STATE_AT + more || w[p->str + 2] != LENGTH_AT + more || w[p->str + 3] != ASCII_AT + more)
		return false;
	if (thread > 4096 || w[p->thread + 2] + 8 > thread || w[p->thread + 4] + 8 > thread || w[p->thread_id] + 8 > thread)
		return false;
	if (frame > ABI_PYTHON_FRAME || code > 512 || w[INTERP] > 4096 || w[NEXT_INTERP] > 1 << 20 || w[THREADS] > 1 << 20)
		return false;
	for (unsigned int i = 1; i <= 5; i++)
		if (w[p->frame + i] >= frame || (i <= 3 && w[p->frame + i] % 8))
			return false;
	for (unsigned int i = 1; i <= 5; i++)
		if (w[p->code + i] + 8 > ABI_PYTHON_CODE || (i <= 4 && w[p->code + i] % 8))
			return false;
	return w[p->code + 9] < code;
}

static const struct published *publishes(uint16_t version)
{
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		if (published[i].version == version)
			return &published[i];
	return NULL;
}

int pyoffsets_publishes(uint16_t version)
{
	return publishes(version) != NULL;
}

/* Is it a build with a GIL, or one without of a version that is served? */
static bool serves_free(uint16_t version, const uint64_t *w)
{
	return !w[FREE_THREADED] || (version >= 0x0300 + CPYTHON_FREE_FIRST && version <= 0x0300 + CPYTHON_FREE_LAST);
}

bool pyoffsets_free_threaded(const struct abi_python *python)
{
	return python->type != TYPE_AT;
}

int pyoffsets_find(uint16_t version, const uint64_t *w, struct abi_python *ret)
{
	const struct published *p = publishes(version);
	uint32_t more;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version != version)
			continue;
		*ret = layouts[i].python;
		return 0;
	}
	if (!p || !w || memcmp(w, "xdebugpy", 8) || w[VERSION] >> 16 != version || !serves_free(version, w) || !makes_sense(w, p))
		return -ENOTSUP;
	more = more_of(w);
	*ret = (struct abi_python){
		.version = version, .runs = ABI_PYTHON_SHIM,
		.interp = (uint32_t)w[INTERP], .next_interp = (uint32_t)w[NEXT_INTERP], .threads = (uint32_t)w[THREADS],
		.next_thread = (uint32_t)w[p->thread + 2], .frame = (uint32_t)w[p->thread + 4],
		.thread_id = (uint32_t)w[p->thread_id], .cframe_frame = ABI_PYTHON_NONE,
		.frame_size = (uint32_t)w[p->frame], .back = (uint32_t)w[p->frame + 1], .code = (uint32_t)w[p->frame + 2],
		.instr = (uint32_t)w[p->frame + 3], .owner = (uint32_t)w[p->frame + 5],
		.file = (uint32_t)w[p->code + 1], .name = (uint32_t)w[p->code + 3], .table = (uint32_t)w[p->code + 4],
		.line = (uint32_t)w[p->code + 5], .first_instr = (uint32_t)w[p->code + 9],
		.type = TYPE_AT + more, .length = LENGTH_AT + more, .state = STATE_AT + more, .ascii_data = ASCII_AT + more,
		.other_data = OTHER_AT + more, .bytes_size = LENGTH_AT + more, .bytes_data = BYTES_AT + more,
	};
	return 0;
}

/* struct _gil_runtime_state has "int locked; unsigned long switch_number; PyCOND_T cond" (pycore_gil.h). */
enum { COND_BEHIND_LOCKED = 16 };

static const struct gil_row {
	uint16_t version;
	uint32_t current, cond, gil;
} gils[] = {
#define LAYOUT(...)
#define PUBLISHED(...)
#define GIL(VERSION, CURRENT, COND) { VERSION, CURRENT, COND, 0 },
#define SLOTS(...)
#define PUBLISHED_GIL(VERSION, GIL) { VERSION, ABI_PYTHON_NONE, 0, GIL },
#include "probe/pyoffsets.def"
#undef PUBLISHED_GIL
#undef SLOTS
#undef GIL
#undef PUBLISHED
#undef LAYOUT
};

int pyoffsets_gil(uint16_t version, const uint64_t *w, struct pyoffsets_gil *ret)
{
	for (size_t i = 0; i < sizeof(gils) / sizeof(gils[0]); i++) {
		const uint64_t *gil = w ? w + gils[i].gil : NULL;	/* pointer, GIL, enabled, locked, holder */

		if (gils[i].version != version)
			continue;
		if (gils[i].current != ABI_PYTHON_NONE) {
			*ret = (struct pyoffsets_gil){ .current = gils[i].current, .cond = gils[i].cond };
			return 0;
		}
		if (!gil || gil[0] > 4096 || gil[3] < gil[1] || gil[4] < gil[1] || gil[3] - gil[1] > 256 || gil[4] - gil[1] > 256)
			return -ENOTSUP;
		*ret = (struct pyoffsets_gil){ .current = ABI_PYTHON_NONE, .gil = (uint32_t)gil[0],
					       .locked = (uint32_t)(gil[3] - gil[1]), .holder = (uint32_t)(gil[4] - gil[1]) };
		ret->cond = ret->locked + COND_BEHIND_LOCKED;
		return 0;
	}
	return -ENOTSUP;
}

static const struct slots_row {
	uint16_t version;
	struct pyoffsets_slots slots;
} slots[] = {
#define LAYOUT(...)
#define PUBLISHED(...)
#define GIL(...)
#define SLOTS(VERSION, FIRST, STACK, BLOCKS, NVARS, NSTACK, HANDLERS)							\
	{ VERSION, { .first = (FIRST), .stack = (STACK), .blocks = (BLOCKS), .nvars = (NVARS), .nstack = (NSTACK),	\
		     .handlers = (HANDLERS), .is_tagged = (VERSION) >= 0x030e } },
#define PUBLISHED_GIL(...)
#include "probe/pyoffsets.def"
#undef PUBLISHED_GIL
#undef SLOTS
#undef GIL
#undef PUBLISHED
#undef LAYOUT
};

int pyoffsets_slots(uint16_t version, const uint64_t *w, struct pyoffsets_slots *ret)
{
	const struct published *p = publishes(version);

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (slots[i].version != version)
			continue;
		*ret = slots[i].slots;
		if (p && w && w[p->frame + 4] < ABI_PYTHON_FRAME)
			ret->first = (uint32_t)w[p->frame + 4];
		return ret->first && ret->first % 8 == 0 ? 0 : -ENOTSUP;
	}
	return -ENOTSUP;
}
