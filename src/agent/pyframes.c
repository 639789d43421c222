/* SPDX-License-Identifier: MIT */
#include "agent/pyframes.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/pyframes_priv.h"
#include "probe/pyoffsets.h"
#include "vm/stack.h"

enum { FILE_INPUT = 257 };
enum { TABLE = offsetof(struct abi_code, table_bytes) };

static const char INIT[] = "__init__";

static struct abi_python *const at = &agent.pyframes.at;

/* The last instruction begun, in bytes from the first. */
static inline uint32_t instr_of(const char *frame, uint64_t code)
{
	if (at->lasti_scale)
		return (uint32_t)*(const int *)(const void *)(frame + at->instr) * at->lasti_scale;
	return (uint32_t)(pyframes_word(frame, at->instr) - (code + at->first_instr));
}

/*
 * A hash of what distinguishes code objects.  The products are independent, so that they can be computed in parallel.
 */
static inline uint64_t number_of(uint32_t pid, uint64_t code)
{
	const char *c = (const char *)(uintptr_t)code;
	uint32_t line = *(const uint32_t *)(const void *)(c + at->line);

	return stack_mix(pid * 0xd6e8feb86659fd93 + code * 0xa0761d6478bd642f + line * 0xe7037ed1a0b428db,
			 pyframes_word(c, at->file) * 0x8ebc6af09c88c6e3 + pyframes_word(c, at->name) * 0x589965cc75374cc3 +
				 pyframes_word(c, at->table) * 0x1d8e4e27c47d124f);
}

/*
 * The characters of a str, of @kind bytes each, as they are: its UTF-8 would have to be allocated, which is not possible
 * at each event.
 */
static void text_of(uint64_t str, const char **text, uint32_t *length, uint32_t *kind)
{
	enum { COMPACT = 0x20, ASCII = 0x40 };		/* bits of the state */
	const char *s = (const char *)(uintptr_t)str;
	uint64_t state = pyframes_word(s, at->state), n = pyframes_word(s, at->length);

	*text = s + (state & ASCII ? at->ascii_data : at->other_data);
	*kind = state >> 2 & 7;
	*length = !(state & COMPACT) || n > UINT32_MAX ? 0 : (uint32_t)n;
}

bool pyframes_learn_hidden(uint64_t code)
{
	const char *text;
	uint32_t length, kind;

	text_of(pyframes_word((const void *)(uintptr_t)code, at->name), &text, &length, &kind);
	if (kind != 1 || length != sizeof(INIT) - 1 || memcmp(text, INIT, length))
		return false;
	agent.pyframes.hidden = code;
	return true;
}

bool pyframes_measured(void)
{
	return agent.pyframes.known;
}

void pyframes_put(uint32_t pid, bool lines, const char *frame, uint64_t code, uint64_t words[2])
{
	words[0] = number_of(pid, code);
	words[1] = lines ? instr_of(frame, code) : UINT32_MAX;
}

uint32_t pyframes_walk(uint32_t pid, bool lines, uint32_t most, uint32_t calls, uint64_t *words, struct pyobj **codes)
{
	const char *frame = *pyframes_top_of(agent.py.PyThreadState_Get());
	uint64_t first = ABI_PYFRAME_FIRST;
	uint32_t n = 0, room = calls ? calls : most;

	for (unsigned steps = 0; frame && most && n < room && steps < 2 * PYFRAMES_MAX; steps++) {
		uint64_t code;

		if (pyframes_is_shim(frame)) {
			first = ABI_PYFRAME_FIRST;
			if (calls) {
				codes[n++] = NULL;
				*words++ = (uint64_t)(uintptr_t)frame;
				*words++ = 0;
			}
		} else {
			code = pyframes_code(frame);
			if (!code)
				break;
			if (pyframes_is_hidden(code)) {
				frame = (const char *)(uintptr_t)pyframes_word(frame, at->back);
				continue;
			}
			codes[n] = (struct pyobj *)(uintptr_t)code;
			*words++ = number_of(pid, code);
			*words++ = lines ? instr_of(frame, code) | first << 32 : UINT32_MAX;
			n++;
			most--;
			first = at->runs == ABI_PYTHON_EACH ||
				(at->runs == ABI_PYTHON_MARKED && ((const uint8_t *)frame)[at->owner]);
		}
		frame = (const char *)(uintptr_t)pyframes_word(frame, at->back);
	}
	return n;
}

/* @frame, or the next one behind it that is not the interpreter's own. */
static bool visible(const char **frame, uint64_t *code)
{
	while (*frame && pyframes_is_shim(*frame))
		*frame = (const char *)(uintptr_t)pyframes_word(*frame, at->back);
	if (!*frame)
		return false;
	*code = pyframes_code(*frame);
	return *code != 0;
}

bool pyframes_top(const char **frame, uint64_t *code)
{
	if (!agent.pyframes.known)
		return false;
	*frame = *pyframes_top_of(agent.py.PyThreadState_Get());
	return visible(frame, code);
}

bool pyframes_caller(const char **frame, uint64_t *code)
{
	*frame = (const char *)(uintptr_t)pyframes_word(*frame, at->back);
	return visible(frame, code);
}

int pyframes_instruction(const char *frame)
{
	if (!agent.pyframes.known || at->lasti_scale)
		return -1;
	return *(const unsigned char *)(uintptr_t)pyframes_word(frame, at->instr);
}

bool pyframes_begun(const char *frame, uint64_t code)
{
	return (int32_t)instr_of(frame, code) >= 0;
}

/* Returns the number of bytes.  The tracer can read the rest of a longer text while the process lives. */
static uint32_t put_text(uint8_t *to, uint32_t most, uint64_t str, uint64_t *addr, uint32_t *length, uint32_t *kind)
{
	const char *text;
	uint64_t n;

	text_of(str, &text, length, kind);
	*addr = (uint64_t)(uintptr_t)text;
	n = (uint64_t)*length * *kind;
	if (n > most)
		n = most;
	memcpy(to, text, n);
	return (uint32_t)n;
}

uint32_t pyframes_tell(struct pyobj *code, uint64_t number, struct abi_code *rec, uint32_t most)
{
	const char *table = (const char *)(uintptr_t)pyframes_word(code, at->table);
	uint64_t n = pyframes_word(table, at->bytes_size);

	rec->number = number;
	rec->version = at->version;
	rec->line = *(const uint32_t *)(const void *)((const char *)code + at->line);
	rec->file.bytes = put_text(rec->file_text, ABI_CODE_FILE, pyframes_word(code, at->file), &rec->file.addr,
				   &rec->file.length, &rec->file.kind);
	rec->name.bytes = put_text(rec->name_text, ABI_CODE_NAME, pyframes_word(code, at->name), &rec->name.addr,
				   &rec->name.length, &rec->name.kind);
	rec->table.addr = (uint64_t)(uintptr_t)table + at->bytes_data;
	rec->table.length = (uint32_t)n;
	rec->table.kind = 1;
	most -= TABLE;
	if (n > most)
		n = most;
	rec->table.bytes = (uint32_t)n;
	memcpy((char *)rec + TABLE, table + at->bytes_data, n);
	return (uint32_t)(TABLE + ((n + 7) & ~7ull));
}

/* --- measuring ---------------------------------------------------------------------------------------- */

/* Is the pointer at offset @off of @code the value of its attribute @name? */
static bool has_at(struct pyobj *code, uint32_t off, const char *name)
{
	struct pyobj *value = agent.py.PyObject_GetAttrString(code, name);
	bool same = value && pyframes_word(code, off) == (uint64_t)(uintptr_t)value;

	agent_release(value);
	return same;
}

/* Are the characters of the str at offset @off of @code, which are ASCII, found without the API? */
static bool text_is_alike(struct pyobj *code, uint32_t off)
{
	uint64_t str = pyframes_word(code, off);
	const char *wanted = agent.py.PyUnicode_AsUTF8((struct pyobj *)(uintptr_t)str), *text;
	uint32_t length, kind;

	text_of(str, &text, &length, &kind);
	return wanted && kind == 1 && length == strlen(wanted) && !memcmp(text, wanted, length);
}

static bool code_is_alike(struct pyobj *code)
{
	struct pyobj *line = agent.py.PyObject_GetAttrString(code, "co_firstlineno");
	bool same = line && *(const int *)(const void *)((const char *)code + at->line) == agent.py.PyLong_AsLong(line);

	agent_release(line);
	return same && has_at(code, at->file, "co_filename") && text_is_alike(code, at->file) &&
	       has_at(code, at->name, agent.py.minor < 11 ? "co_name" : "co_qualname") &&
	       has_at(code, at->table, agent.py.minor < 10 ? "co_lnotab" : "co_linetable");
}

/* Is the stack that was walked equal to that of @frame?  Takes the reference. */
static bool stack_is_alike(struct pyobj *frame, const uint64_t *words, struct pyobj *const *codes, uint32_t n)
{
	bool same = true;

	for (uint32_t k = 0; same && (k < n || frame) && k < PYFRAMES_MAX; k++) {
		struct pyobj *code = frame ? agent.py.PyFrame_GetCode(frame) : NULL, *back;

		same = code && k < n && code == codes[k] && code_is_alike(code) &&
		       agent.py.PyCode_Addr2Line(code, (int)words[2 * k + 1]) == agent.py.PyFrame_GetLineNumber(frame);
		agent_release(code);
		back = frame ? agent.py.PyFrame_GetBack(frame) : NULL;
		agent_release(frame);
		frame = back;
	}
	agent_release(frame);
	return same;
}

static unsigned alike;		/* number of stacks found to be equal */

static struct pyobj *compare(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	static uint64_t words[2 * PYFRAMES_MAX];
	static struct pyobj *codes[PYFRAMES_MAX];
	struct pyobj *frame = agent.py.PyEval_GetFrame();
	uint32_t n = pyframes_walk(1, true, PYFRAMES_MAX, 0, words, codes);

	(void)self;
	(void)args;
	(void)nargs;
	if (frame)
		agent.py.Py_IncRef(frame);
	alike += n >= 2 && stack_is_alike(frame, words, codes, n);
	agent.py.PyErr_Clear();
	return agent_none();
}

/* Run calls, a call from C, and a generator. */
static bool run_specimen(void)
{
	static const char source[] = "def plain(see):\n see()\n"
				     "def generator(see):\n plain(\n  see)\n yield 1\n"
				     "def by_c(see):\n [*generator(see)]\n see()\n"
				     "by_c(see)\n";
	static struct capi_method method = { "dtap_see", compare, CAPI_FASTCALL, NULL };
	const struct capi *py = &agent.py;
	struct pyobj *code = py->Py_CompileString(source, "<dtap>", FILE_INPUT);
	struct pyobj *globals = py->PyDict_New(), *see = agent_callable(&method), *result = NULL;

	alike = 0;
	if (code && globals && see && !py->PyDict_SetItemString(globals, "see", see))
		result = py->PyEval_EvalCode(code, globals, globals);
	agent_release(result);
	agent_release(see);
	agent_release(globals);
	agent_release(code);
	py->PyErr_Clear();
	return alike == 2;
}

bool pyframes_measure(void)
{
	if (agent.pyframes.asked)
		return agent.pyframes.known;
	agent.pyframes.asked = true;
	if (!agent.py._PyRuntime || !agent.py.PyCode_Type || !agent.py.PyFrame_GetBack ||
	    pyoffsets_find((uint16_t)(0x0300 | agent.py.minor), agent.py._PyRuntime, at))
		return false;
	at->code_type = (uint64_t)(uintptr_t)agent.py.PyCode_Type;
	agent.pyframes.known = run_specimen();
	return agent.pyframes.known;
}
