/* SPDX-License-Identifier: MIT */
/*
 * Frames before 3.12, measured.
 *
 * A specimen, a few lines that create and run a generator, is run under an evaluator that records the first words of
 * each frame.  The code object is found by its known address; a structure's instruction pointer is the word that points
 * just before the first instruction when the frame starts, and after that on a resume.  Recursion is counted in the
 * thread state: the change by Py_EnterRecursiveCall() shows where, and at the limit, which byte permits exceeding it.
 */
#include "agent/frame.h"

#include <string.h>

/* The number of words before the variables in the shortest frame: a generator's in 3.11. */
enum { SEEN_FRAMES = 4, SEEN_WORDS = 9, THREAD_BYTES = 128, INTERP_BYTES = 256, INSTRUCTION = 2, MANY_INSTRUCTIONS = 200 };
enum { FILE_INPUT = 257 };

/* The frames recorded by the measuring evaluator.  Only one thread measures, with the GIL. */
static struct {
	struct pythread *thread;
	capi_evaluator *next;
	char *globals;			/* of the first frame; only its address is used */
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

/* Run the specimen.  Returns its code object, which the caller releases. */
static struct pyobj *run_specimen(void)
{
	static const char source[] = "def dtap():\n yield 1\nfor _ in dtap(): pass\n";
	const struct capi *py = &agent.py;
	struct pyinterp *interp = py->PyInterpreterState_Main();
	struct pyobj *code = py->Py_CompileString(source, "<dtap>", FILE_INPUT);
	struct pyobj *globals = py->PyDict_New(), *locals = py->PyDict_New(), *result = NULL;

	seen.globals = (char *)globals;
	seen.thread = py->PyThreadState_Get();
	seen.n = 0;
	seen.next = py->_PyInterpreterState_GetEvalFrameFunc(interp);
	if (code && globals && locals) {
		py->_PyInterpreterState_SetEvalFrameFunc(interp, write_down);
		result = py->PyEval_EvalCode(code, globals, locals);
		if (py->_PyInterpreterState_GetEvalFrameFunc(interp) == write_down)
			py->_PyInterpreterState_SetEvalFrameFunc(interp, seen.next);
	}
	agent_release(locals);
	agent_release(globals);
	if (!result) {
		agent_release(code);
		return NULL;
	}
	agent_release(result);
	return code;
}

/* The offset of the word in frame @i that is equal to @value; -1: none or several. */
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

/* Frames 0 to 3: the module, the creation of the generator, two resumes. */
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

/* Find co_flags with a code object whose flags have a unique value, without those of a generator. */
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
 * Find the recursion limit in memory, since a call of Py_GetRecursionLimit() would take longer than everything else.
 * If it is not found, the function is called.
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
	/* Set the depth to the limit: the call must fail, and may set the byte after the depth. */
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
	layout->globals_off = find_word(0, seen.globals);
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

/* The instructions before the first line, which create cells, have no line. */
static int line_at(struct pyobj *code, long off)
{
	int line = agent.py.PyCode_Addr2Line(code, off < 0 ? 0 : (int)off);

	return line < 0 && off < 0 ? agent.py.PyCode_Addr2Line(code, -1) : line;
}

/* @where is the instruction's offset. */
static int line_of_instruction(const struct moment *moment)
{
	return line_at(moment->code, (long)moment->where);
}

int frame_line(const struct frame_layout *layout, struct pyobj *code, const void *frame)
{
	if (layout->object)
		return agent.py.PyFrame_GetLineNumber((struct pyobj *)frame);
	return line_at(code, frame_instr(layout, frame));
}

void frame_moment(const struct frame_layout *layout, const void *frame, struct moment *moment)
{
	*moment = (struct moment){
		.code = frame_code(layout, frame),
		.line = layout->object ? line_of_object : line_of_instruction,
		.where = layout->object ? frame : (void *)frame_instr(layout, frame),
	};
}

long frame_object_at(struct pyobj *frame)
{
	struct pyobj *lasti = agent.py.PyObject_GetAttrString(frame, "f_lasti");
	long at = lasti ? agent.py.PyLong_AsLong(lasti) : -1;

	agent_release(lasti);
	agent.py.PyErr_Clear();
	return at;
}

bool frame_instrs(struct pyobj *code, long at, unsigned char instrs[4])
{
	struct pyobj *bytes = at >= 0 ? agent.py.PyObject_GetAttrString(code, "co_code") : NULL;
	long size = bytes ? agent.py.PyBytes_Size(bytes) : 0;
	bool known = at + 1 < size;

	memset(instrs, 0, 4);
	if (known)
		memcpy(instrs, agent.py.PyBytes_AsString(bytes) + at, (size_t)(size - at < 4 ? size - at : 4));
	agent_release(bytes);
	agent.py.PyErr_Clear();
	return known;
}
