/*
 * What unit.c decides for all programs of a session, for the code generators alone.
 */
#ifndef DTAP_BPF_UNIT_H
#define DTAP_BPF_UNIT_H

#include "bpf/ebpf.h"
#include "bpf/lock.h"
#include "bpf/plan.h"
#include "ir/layout.h"

/*
 * A scratch slot.  A program takes one and gives it back when it ends; a program that preempts it takes another.
 *
 *	busy | spilled integers | integer this-> and locals | state | work area | string buffers | this-> strings and
 *	locals | raised text | frames of procedures | iterations | the last match | a probe's names | copyin copies
 */
enum {
	SCRATCH_BUSY = 0,
	SCRATCH_GIL = 8,	/* two arguments (gen_gil.c) */
	SCRATCH_GIVEN = SCRATCH_GIL,	/* the address of the values of Python (gen_away.c) */
	SCRATCH_SPILLS = 24,
	SCRATCH_TRIES = 8,	/* slots a program tries before it gives up */
};

/* Words of the state (gen_flow.c). */
enum {
	STATE_ACTIONS,		/* actions that are left to SPEND */
	STATE_DEPTH,		/* depth of calls */
	STATE_NTRIES,
	STATE_AT,		/* number of the turn point where the next turn begins, if turns are calls */
	STATE_TURNS,		/* turns that are left */
	STATE_LATE,		/* the turns were used up and a fault was caught: those left are the reserve */
	STATE_FAULT,		/* three words, as IR_CAUGHT_KIND ... number them */
	STATE_TRIES = STATE_FAULT + 3,
	STATE_WORDS = STATE_TRIES + IR_MAX_TRIES,
};

/* Words of an iteration's state (gen_iter.c). */
enum { ITER_BUF, ITER_POS, ITER_N, ITER_LEFT, ITER_NUMBER, ITER_KEY, ITER_VALUE, ITER_WORDS };

/* Offsets in the scratch slot: of the state, of the key and of the value. */
struct iter_layout {
	uint32_t off, key, value;
};

/* A regular expression's code in the read-only map. */
struct rodata_regex {
	const char *text;
	const struct regex *re;
	uint32_t off;
};

struct rodata_str {
	const char *s;
	uint32_t off;
};

/* The maps of an associative array or an aggregation. */
struct keyed {
	uint32_t first;			/* number of the first map */
	unsigned int n;			/* key classes */
	uint32_t ints, strs;		/* parts of each type, including the thread */
	uint32_t sizes[IR_KEY_CLASSES];	/* bytes of the key in each */
};

/* Where programs in the kernel find a map: by its number, or, if outer is not 0, as an element of the map outer. */
struct map_place {
	uint32_t outer, index;
};

/* A kind of stack that is kept of threads that leave their CPU (gen_kept.c). */
struct kept_form {
	enum ir_stack whose;
	uint32_t frames;
};

struct ebpf_private {
	struct plan **plans;		/* by clause */
	uint32_t *var_off;		/* by variable, in its map's value, the scratch slot or its frame */
	struct keyed *maps, *aggs;	/* by id */
	struct map_place *places;	/* by map */
	uint32_t index_off;		/* in the read-only map: the numbers 0, 1 ..., 4 bytes each, that maps have in others */
	uint32_t nindexes;
	struct rodata_str *strs;
	uint32_t nstrs;
	size_t strs_cap;
	struct rodata_regex *regexes;
	uint32_t nregexes;
	size_t regexes_cap;
	bool python;			/* stacks have frames of Python */
	bool unwind, unwinds;		/* user stacks are walked by tables: wanted; and a clause has such stacks */
	struct kept_form *kept;		/* of threads that leave their CPU */
	uint32_t nkept;
	size_t kept_cap;
	bool matched;			/* a clause asks for the last match: it is kept at match_off */
	uint32_t match_off;		/* rt/match.h's slots, the string */
	uint32_t named_off;		/* rt/named.h's work area, if functions are entered in the probe table */
	uint32_t rodata_size;		/* bytes in use, while strings are added */
	uint32_t zeros_off;		/* in the read-only map: zeros_size bytes of 0 */
	uint32_t zeros_size;
	uint32_t threads_size;		/* bytes of a thread's variables */
	uint32_t scratch_slots;		/* a power of two */
	struct lock_use *locks;		/* by clause */
	bool is_apart;			/* no clause has several operations on what others write */
	uint32_t lock_slots;		/* a power of two */
	uint32_t state_off, work_off, strs_off, raise_off, frames_off, copyin_off;
	uint32_t frame_size;		/* bytes of a procedure's frame */
	struct iter_layout *iters;	/* by id */
	uint32_t iter_max;		/* entries of a buffer for an iteration */
	uint32_t iter_buffers;
	uint32_t copyin_size;		/* of the clause that needs most */
	uint32_t copyin_guard;		/* unused bytes on both sides, for pointers outside of it; 0: none */
	bool copyin_written;			/* written to at offsets that the verifier does not know */
	uint32_t alloca_max;		/* bytes of the largest piece of it that alloca() gives */
	uint32_t str_buf;		/* bytes of a string buffer: ir_str_room(), and 8 that word reads may touch */
};

/* The offset of @s, cut to what a string may hold, in the read-only map. */
uint32_t unit_rodata(const struct ir_prog *prog, struct ebpf_private *p, const char *s);

/* Is @i a stack whose kind and number of frames are constants?  Then *ret is that (gen_stack.c). */
bool gen_stack_form(const struct plan *plan, const struct ir_insn *i, struct kept_form *ret);

/* Does @fn ask for a value of the traced language (gen_value.c)? */
bool gen_asks_value(enum ir_fn fn);
enum abi_value gen_value_asked(enum ir_fn fn);	/* which, if it does */

/* ebpf_known() for laps and spans (lap.c). */
struct ebpf_known lap_known(const struct ebpf_unit *u, const struct ir_clause *c);

#endif
