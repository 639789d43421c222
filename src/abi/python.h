/*
 * For programs in the kernel that walk Python frames: what the tracer tells them about a process, and what they report
 * about a code object.
 *
 * As in abi/unwind.h, a program looks a process up by its key, and asks the tracer about an unknown one; the answer
 * is a struct abi_python.
 */
#ifndef DTAP_ABI_PYTHON_H
#define DTAP_ABI_PYTHON_H

#include "abi/record.h"
#include "abi/unwind.h"

/* How to find where the frames of one native call of the evaluator end. */
enum abi_python_runs {
	ABI_PYTHON_EACH,	/* each frame has its own call (3.9, 3.10) */
	ABI_PYTHON_MARKED,	/* a field of the frame says that it was entered from C (3.11) */
	ABI_PYTHON_SHIM,	/* the next outer frame is a shim, not a Python function's (3.12) */
};

enum { ABI_PYTHON_NONE = 0xffffffff };		/* as an offset: this version has no such field */

/* Byte offsets in CPython's structures; in frames and code objects below ABI_PYTHON_FRAME and ABI_PYTHON_CODE. */
struct abi_python {
	abi_u64 runtime;	/* address of _PyRuntime; 0: not a Python that dtap knows */
	abi_u64 code_type;	/* address of PyCode_Type: ob_type of a code object */
	abi_u32 version;	/* 0x030b for 3.11 */
	abi_u32 runs;		/* enum abi_python_runs */
	/* _PyRuntime, the states of an interpreter and of a thread, and _PyCFrame between the latter and its frame */
	abi_u32 interp, next_interp, threads, next_thread, thread_id, frame, cframe_frame;
	/* a frame: instr is a pointer, or, if lasti_scale is not 0, an int in units of so many bytes */
	abi_u32 back, code, instr, lasti_scale, owner, frame_size;
	/* a code object */
	abi_u32 first_instr, file, name, table, line;
	/* str and bytes */
	abi_u32 length, state, ascii_data, other_data, bytes_size, bytes_data;
	abi_u32 type, pad;	/* any object: ob_type */
};
_Static_assert(sizeof(struct abi_python) == 128, "what is known of a Python");

enum { ABI_PYTHON_FRAME = 112, ABI_PYTHON_CODE = 168 };		/* the most bytes read of each */

/*
 * The record of a code object that a program has not seen before.  A text that could not be read has no bytes here; the
 * tracer can try to read it at its address while the process lives.
 */
enum { ABI_REC_CODE = 0xfffffffc };
enum { ABI_CODE_FILE = 512, ABI_CODE_NAME = 256, ABI_CODE_TABLE = 16384 };

struct abi_code {
	struct abi_record hdr;
	abi_u64 number;			/* identifies it in frames */
	abi_u32 version, line;
	struct {
		abi_u64 addr;		/* of the first byte */
		abi_u32 length, kind;	/* in characters or bytes; bytes per character, 0: bytes of UTF-8 */
		abi_u32 bytes, pad;	/* number of its bytes that are in this record */
	} file, name, table;
	abi_u8 file_text[ABI_CODE_FILE], name_text[ABI_CODE_NAME];
	abi_u8 table_bytes[ABI_CODE_TABLE];	/* sent up to the table's length, rounded up to 8 */
};
_Static_assert(sizeof(struct abi_code) == 48 + 3 * 24 + ABI_CODE_FILE + ABI_CODE_NAME + ABI_CODE_TABLE, "code object");

/*
 * A Python frame in the record of a stack (ABI_STACK_PYTHON).
 */
struct abi_pyframe {
	abi_u64 code;		/* struct abi_code's number */
	abi_u32 instr;		/* offset of the current instruction in bytes; negative: before the first, or unknown */
	abi_u32 flags;
};
_Static_assert(sizeof(struct abi_pyframe) == 16, "frame of Python");
enum {
	ABI_PYFRAME_FIRST = 1,	/* the innermost frame of a native call of the evaluator */
	ABI_PYFRAME_CALL = 2,	/* no frame: the evaluator's call of the frames before it; instr: its address's index */
};

#endif
