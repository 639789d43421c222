/*
 * shm_run_prog() inline, for those who run a program at each event of a hot function.
 */
#ifndef DTAP_VM_ENTER_H
#define DTAP_VM_ENTER_H

#include "vm/prog.h"
#include "vm/shm.h"

/* The parts that hardly ever are needed: the program has failed; it has asked for signals. */
void shm_run_failed(struct shm_run *r);
void shm_run_signals(struct shm_run *r);

static inline __attribute__((always_inline)) bool shm_run_inline(struct shm_run *r, const struct vm_prog *p, uint64_t ctx[11])
{
	struct abi_lane *l = (struct abi_lane *)(void *)r->lane;
	int err;

	if (__builtin_expect(r->running, 0))
		return false;
	r->running = true;
	__atomic_store_n(&l->busy, 1, __ATOMIC_RELAXED);
	r->cpu = 0;
	err = __builtin_expect(p->entry != NULL, 1) ? vm_enter(p, &r->thread, ctx) :
						      vm_interpret(p, &r->thread, ctx, &r->thread.ret);
	if (__builtin_expect(err, 0))
		shm_run_failed(r);
	__atomic_store_n(&l->busy, 0, __ATOMIC_RELEASE);
	r->running = false;
	if (__builtin_expect(r->signals != 0, 0))
		shm_run_signals(r);
	return !err;
}

#endif
