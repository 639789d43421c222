/*
 * For machines without a compiler: the interpreter runs the programs.
 */
#include "vm/prog.h"

#include <errno.h>

int vm_code_new(struct vm_prog *p)
{
	(void)p;
	return -ENOTSUP;
}

void vm_code_free(struct vm_code *c)
{
	(void)c;
}

void vm_code_fault(const struct vm_prog *p, struct vm_thread *t)
{
	(void)p;
	(void)t;
}
