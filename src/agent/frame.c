/* SPDX-License-Identifier: MIT */
/*
 * Frames before 3.12, measured.
 *
 * A specimen, a few lines that make and run a generator, is run under an evaluator that writes down the first
 * words of each frame.  The code object is the word that all agree on; the instruction pointer of a structure is
 * the one that stands just before the first instruction of the code at the start, and behind it on a resume.
 * Recursion is counted in the thread state: Py_EnterRecursiveCall() shows where, and at the limit which byte
 * allows for more.
 */
#include "agent/frame.h"

#include <string.h>

enum { SEEN_FRAMES = 4, SEEN_WORDS = 12, THREAD_BYTES = 128, INTERP_BYTES = 256, INSTRUCTION = 2, MANY_INSTRUCTIONS = 200 };
enum { FILE_INPUT = 257 };

/* What the measuring evaluator has seen.  Only one thread measures, with the GIL. */
static struct {
	struct pythread *thread;
	capi_evaluator *next;
	int n;
	char *words[SEEN_FRAMES][SEEN_WORDS];
} seen;

static struct pyobj *write_down(struct pythread *thread, void *frame, int throwing)
{
	if (thread == seen.thread && seen.n < SEEN_FRAMES)
		memcpy(seen.words[seen.n++], frame, sizeof(seen.words[0]));
	return seen.next(thread, frame, throwing);
}

static struct pyobj *attribute(struct pyobj *obj, const char *name)
{
	return obj ? agent.py.PyObject_GetAttrString(obj, name) : NULL;
}

static long long_attribute(struct pyobj *obj, const char *name)
{
	struct pyobj *value = attribute(obj, name);
	long number = value ? agent.py.PyLong_AsLong(value) : -1;

	agent_release(value);
	return number;
}

/* The code object of the specimen, run; the caller's to release. */
static struct pyobj *run_specimen(void)
{
	static const char source[] = "def dtap():\n yield 1\nfor _ in dtap(): pass\n";
	const struct capi *py = &agent.py;
	struct pyinterp *interp = py->PyInterpreterState_Main();
	struct pyobj *code = py->Py_CompileString(source, "<dtap>", FILE_INPUT);
	struct pyobj *globals = py->PyDict_New(), *result = NULL;

	seen.thread = py->PyThreadState_Get();
	seen.n = 0;
	seen.next = py->_PyInterpreterState_GetEvalFrameFunc(interp);
	if (code && globals) {
		py->_PyInterpreterState_SetEvalFrameFunc(interp, write_down);
		result = py->PyEval_EvalCode(code, globals, globals);
		if (py->_PyInterpreterState_GetEvalFrameFunc(interp) == write_down)
			py->_PyInterpreterState_SetEvalFrameFunc(interp, seen.next);
	}
	agent_release(globals);
	if (!result) {
		agent_release(code);
		return NULL;
	}
	agent_release(result);
	return code;
}

/* The only word of frame @i that is @value: its offset, or -1. */
static long find_word(int i, const char *value)
{
	long found = -1;

	for (int word = 0; word < SEEN_WORDS; word++) {
		if (seen.words[i][word] != value)
			continue;
		if (found >= 0)
			return -1;
		found = word * (long)sizeof(void *);
	}
	return found;
}

static char *word_at(int i, long off)
{
	return seen.words[i][off / (long)sizeof(void *)];
}

/* Frames 0 to 3: the module, the generator's making, two resumes. */
static bool measure_structure(struct frame_layout *layout, struct pyobj *code)
{
	struct pyobj *type = attribute(code, "__class__");
	const char *before, *generator;

	layout->first_off = long_attribute(type, "__basicsize__");
	agent_release(type);
	if (layout->first_off <= 0)
		return false;
	layout->instr_off = find_word(0, (char *)code + layout->first_off - INSTRUCTION);
	if (layout->instr_off < 0 || seen.n != SEEN_FRAMES)
		return false;
	generator = word_at(1, layout->code_off);
	before = generator + layout->first_off - INSTRUCTION;
	for (int i = 1; i < SEEN_FRAMES; i++)
		if (word_at(i, layout->code_off) != generator)
			return false;
	for (int i = 2; i < SEEN_FRAMES; i++)
		if (word_at(i, layout->instr_off) <= before ||
		    word_at(i, layout->instr_off) > before + MANY_INSTRUCTIONS)
			return false;
	return word_at(1, layout->instr_off) == before;
}

/* A code object with flags that nothing else in it resembles, among which is none of a generator. */
static long find_flags(struct pyobj *code)
{
	const struct capi *py = &agent.py;
	struct pyobj *none = py->PyTuple_New(0), *changes = py->PyDict_New(), *replace = attribute(code, "replace");
	struct pyobj *flags = py->PyLong_FromLong(0x5a3c1000), *changed = NULL;
	long found = -1, size;

	if (none && changes && replace && flags && !py->PyDict_SetItemString(changes, "co_flags", flags))
		changed = py->PyObject_Call(replace, none, changes);
	if (changed) {
		struct pyobj *type = attribute(changed, "__class__");
		long want = long_attribute(changed, "co_flags");

		size = long_attribute(type, "__basicsize__");
		for (long off = 2 * sizeof(void *); off + (long)sizeof(int) <= size; off += sizeof(int)) {
			if (*(int *)((char *)changed + off) != (int)want)
				continue;
			found = found < 0 ? off : -2;
		}
		agent_release(type);
	}
	agent_release(changed);
	agent_release(flags);
	agent_release(replace);
	agent_release(changes);
	agent_release(none);
	return found;
}

/*
 * Where the limit of depth lies is worth knowing, since asking for it takes longer than all else; without it, it is
 * asked for.
 */
static void measure_limit(struct frame_layout *layout)
{
	const struct capi *py = &agent.py;
	const char *thread = (const char *)py->PyThreadState_Get(), *interp = (const char *)py->PyInterpreterState_Main();
	int limit = py->Py_GetRecursionLimit();
	long found = 0, owner = 0;

	for (long off = 0; off < THREAD_BYTES; off += sizeof(void *)) {
		if (*(const char *const *)(thread + off) == interp)
			owner = owner ? -1 : off;
	}
	if (owner <= 0 || !py->Py_SetRecursionLimit)
		return;
	py->Py_SetRecursionLimit(limit + 1);
	for (long off = 0; off < INTERP_BYTES; off += sizeof(int)) {
		if (*(const int *)(interp + off) == limit + 1)
			found = found ? -1 : off;
	}
	py->Py_SetRecursionLimit(limit);
	if (found <= 0 || *(const int *)(interp + found) != limit)
		return;
	layout->interp_off = owner;
	layout->limit_off = found;
}

static bool measure_depth(struct frame_layout *layout)
{
	const struct capi *py = &agent.py;
	struct pythread *thread = py->PyThreadState_Get();
	char before[THREAD_BYTES], inside[THREAD_BYTES];
	int at_limit, *depth, old;
	char *overflowed, flag;

	layout->depth_off = -1;
	memcpy(before, thread, sizeof(before));
	if (py->Py_EnterRecursiveCall(""))
		return false;
	memcpy(inside, thread, sizeof(inside));
	py->Py_LeaveRecursiveCall();
	for (long off = 0; off < THREAD_BYTES; off += sizeof(int)) {
		int change = *(int *)(inside + off) - *(int *)(before + off);

		if (!change)
			continue;
		if (layout->depth_off >= 0 || (change != 1 && change != -1))
			return false;
		layout->depth_off = off;
		layout->depth_falls = change < 0;
	}
	if (layout->depth_off < 0)
		return false;
	/* Go to the limit: the call must fail, and may leave the next byte set. */
	depth = (int *)((char *)thread + layout->depth_off);
	overflowed = (char *)(depth + 1);
	old = *depth;
	flag = *overflowed;
	at_limit = layout->depth_falls ? 0 : py->Py_GetRecursionLimit();
	*depth = at_limit;
	if (!py->Py_EnterRecursiveCall("")) {
		*depth = old;
		return false;
	}
	py->PyErr_Clear();
	if (!layout->depth_falls && *overflowed != flag)
		layout->overflowed_off = (long)(overflowed - (char *)thread);
	if (!layout->depth_falls)
		measure_limit(layout);
	*depth = old;
	*overflowed = flag;
	return true;
}

bool frame_measure(struct frame_layout *layout)
{
	struct pyobj *code = run_specimen();
	bool done = false;

	memset(layout, 0, sizeof(*layout));
	if (!code)
		return false;
	layout->code_off = seen.n > 2 ? find_word(0, (char *)code) : -1;
	layout->object = word_at(0, sizeof(void *)) == (char *)agent.py.PyFrame_Type;
	layout->flags_off = find_flags(code);
	if (layout->code_off > 0 && layout->flags_off > 0)
		done = (layout->object || measure_structure(layout, code)) && measure_depth(layout);
	agent_release(code);
	agent.py.PyErr_Clear();
	return done;
}

static int line_of_object(const struct moment *moment)
{
	return agent.py.PyFrame_GetLineNumber((struct pyobj *)moment->where);
}

/* @where is the instruction.  What comes before the first line, making cells, has none. */
static int line_of_instruction(const struct moment *moment)
{
	long off = (long)moment->where;
	int line = agent.py.PyCode_Addr2Line(moment->code, off < 0 ? 0 : (int)off);

	return line < 0 && off < 0 ? agent.py.PyCode_Addr2Line(moment->code, -1) : line;
}

void frame_moment(const struct frame_layout *layout, const void *frame, struct moment *moment)
{
	moment->code = frame_code(layout, frame);
	moment->line = layout->object ? line_of_object : line_of_instruction;
	moment->where = layout->object ? frame : (void *)frame_instr(layout, frame);
}
