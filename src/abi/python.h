/*
 * Python's frames as programs in the kernel walk them: what the tracer tells of a process, and what a program tells of a
 * code object.
 *
 * A program knows a process as abi/unwind.h has it, and asks about one that it finds nothing for; the answer is a
 * struct abi_python.
 */
#ifndef DTAP_ABI_PYTHON_H
#define DTAP_ABI_PYTHON_H

#include "abi/record.h"
#include "abi/unwind.h"

/* How the runs of frames that one native call of the evaluator has are told apart. */
enum abi_python_runs {
	ABI_PYTHON_EACH,	/* there is a call for each frame (3.9, 3.10) */
	ABI_PYTHON_MARKED,	/* the frame says that it was entered from C (3.11) */
	ABI_PYTHON_SHIM,	/* a frame that is none of Python's lies behind it (3.12) */
};

enum { ABI_PYTHON_NONE = 0xffffffff };		/* an offset: there is no such thing */

/* Offsets in bytes in CPython's structures.  All of them are below ABI_PYTHON_FRAME or ABI_PYTHON_CODE where these are read. */
struct abi_python {
	abi_u64 runtime;	/* address of _PyRuntime; 0: not a Python, or none that is known */
	abi_u64 code_type;	/* address of PyCode_Type: what a code object says it is */
	abi_u32 version;	/* 0x030b for 3.11 */
	abi_u32 runs;		/* enum abi_python_runs */
	/* _PyRuntime, the state of an interpreter, of a thread, and what that has between itself and its frame */
	abi_u32 interp, next_interp, threads, next_thread, thread_id, frame, cframe_frame;
	/* a frame: instr is a pointer, or (lasti_scale not 0) an int that counts so many bytes */
	abi_u32 back, code, instr, lasti_scale, owner, frame_size;
	/* a code object */
	abi_u32 first_instr, file, name, table, line;
	/* str and bytes */
	abi_u32 length, state, ascii_data, other_data, bytes_size, bytes_data;
};
_Static_assert(sizeof(struct abi_python) == 120, "what is known of a Python");

enum { ABI_PYTHON_FRAME = 112, ABI_PYTHON_CODE = 168 };		/* bytes read of each, at most */

/*
 * The record of a code object that a program has not met before.  What could not be read has no bytes here, and can be
 * looked for at the address while the process lives.
 */
enum { ABI_REC_CODE = 0xfffffffc };
enum { ABI_CODE_FILE = 512, ABI_CODE_NAME = 256, ABI_CODE_TABLE = 16384 };

struct abi_code {
	struct abi_record hdr;
	abi_u64 number;			/* that stands for it in frames */
	abi_u32 version, line;
	struct {
		abi_u64 addr;		/* of the first */
		abi_u32 length, kind;	/* characters or bytes; bytes of a character, 0: bytes of UTF-8 */
		abi_u32 bytes, pad;	/* of it that are here */
	} file, name, table;
	abi_u8 file_text[ABI_CODE_FILE], name_text[ABI_CODE_NAME];
	abi_u8 table_bytes[ABI_CODE_TABLE];	/* as many as there are, rounded up to 8 */
};
_Static_assert(sizeof(struct abi_code) == 48 + 3 * 24 + ABI_CODE_FILE + ABI_CODE_NAME + ABI_CODE_TABLE, "code object");

/*
 * A frame of Python in the record of a stack (ABI_STACK_PYTHON).
 */
struct abi_pyframe {
	abi_u64 code;		/* struct abi_code's number */
	abi_u32 instr;		/* the last instruction begun, bytes from the first; negative before it */
	abi_u32 flags;
};
_Static_assert(sizeof(struct abi_pyframe) == 16, "frame of Python");
enum {
	ABI_PYFRAME_FIRST = 1,	/* the innermost of those that one native call of the evaluator runs */
	ABI_PYFRAME_CALL = 2,	/* none, but that call, of those before it: instr is its number among the addresses */
};

#endif
