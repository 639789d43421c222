/* What the tests of out/ share: cmocka, a sink in memory, values with their types. */
#ifndef OUT_TEST_H
#define OUT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "ir/layout.h"
#include "out/sink.h"

struct typed {
	struct ir_value v;
	struct ir_slot slot;
};

#define INT(width_, sign_, value) \
	{ { .type = IR_INT, .i = (int64_t)(value) }, { .type = IR_INT, .width = (width_), .sign = (sign_) } }
#define I8(v) INT(1, true, v)
#define U8(v) INT(1, false, v)
#define I16(v) INT(2, true, v)
#define U16(v) INT(2, false, v)
#define I32(v) INT(4, true, v)
#define U32(v) INT(4, false, v)
#define I64(v) INT(8, true, v)
#define U64(v) INT(8, false, v)
#define STR(text) { { .type = IR_STR, .s = (text) }, { .type = IR_STR } }

enum { MAX_ARGS = 16 };

static inline void split(const struct typed *t, size_t n, struct ir_value *v, struct ir_slot *slots)
{
	for (size_t i = 0; i < n; i++) {
		v[i] = t[i].v;
		slots[i] = t[i].slot;
	}
}

#endif
