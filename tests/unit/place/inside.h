/*
 * The target place with the agent's part played by the test: a D script whose function-entry clause is run in this
 * process, as the agent runs it in a target.
 */
#ifndef TEST_INSIDE_H
#define TEST_INSIDE_H

#include "../d/compile.h"
#include "place/target.h"
#include "vm/shm.h"

enum { INSIDE_PROGS = 32 };

struct inside {
	struct compiled c;
	struct ebpf_unit *unit;
	struct place *place;
	struct shm shm;			/* a second mapping, the target's */
	void *image, *data;
	uint64_t image_size, data_size;
	struct shm_run run;
	struct vm_prog *progs[INSIDE_PROGS];
	uint32_t nprogs;
};

/* All clauses of @script are for one marker.  @compile: by the compiler, else the interpreter. */
void inside_make(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile);

/* The same with a program for each clause, to be run one by one. */
void inside_make_each(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile);
void inside_fire_one(struct inside *in, unsigned int number, const char *file, const char *func, int line);

void inside_free(struct inside *in);
void inside_fire(struct inside *in, const char *file, const char *func, int line);

/* What programs lost of @kind. */
uint64_t inside_drops(const struct inside *in, enum abi_drop kind);

/* The first word of the value that the aggregation numbered @agg has under the string @key, over all lanes. */
uint64_t inside_count(const struct inside *in, unsigned int agg, const char *key, unsigned int *times);

#endif
