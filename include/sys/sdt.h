/* SPDX-License-Identifier: MIT */
/*
 * <sys/sdt.h>: markers for C, C++ and assembly.
 *
 * A marker is a place in a program that a tracer can watch, with up to twelve values to read there:
 *
 *	#include <sys/sdt.h>
 *
 *	DTRACE_PROBE2(myserv, query__receive, client, strlen(query));
 *
 * names the provider (myserv), the marker (query__receive, which D writes query-receive) and its arguments.
 * dtap, SystemTap, perf, bpftrace, gdb and every other reader of "stapsdt" notes find it in the finished
 * program; `readelf -n` shows what they see.  Only this file is needed: nothing to link, no set-up, and only
 * the nops and notes remain after compilation.
 *
 * What a marker costs
 *
 *	One nop in the text, and the computation of the arguments; the compiler may leave them where they are
 *	(register, stack, constant), so values that exist anyway cost nothing.  The note is not loaded.
 *
 *	The nop is one byte long on x86.  The kernel (6.18 and later) handles a nop of five bytes faster, since
 *	it replaces it by a call; but a call writes its return address below the stack pointer, where the
 *	x86-64 ABI lets a leaf function keep variables (the "red zone").  A header cannot know whether its
 *	marker is in such a function, so the long form is only for code compiled with -mno-red-zone: define
 *	SDT_NO_RED_ZONE before including this file.  Other machines have one length.  Do not use it in programs
 *	that fork: in Linux 6.18 the child has the call but not its target, and crashes there.
 *
 * The macros
 *
 *	DTRACE_PROBE(provider, name)
 *	DTRACE_PROBE1(provider, name, arg) ... DTRACE_PROBE12(provider, name, arg1, ..., arg12)
 *	STAP_PROBE, STAP_PROBE1 ... STAP_PROBE12	the same by SystemTap's names
 *	STAP_PROBEV(provider, name, ...)		counts its arguments: 0 to 12
 *
 *	They are statements.  Provider and name are written without quotes and may be macros that expand to a
 *	name.  The same marker may be in many places; inlining duplicates it like other code.
 *
 * Arguments
 *
 *	Any integer, enumeration, bit-field, pointer, array or function (these two as pointers) and, where
 *	the tracer can read them, float, double and structures.  Each is evaluated once, whether or not
 *	a tracer listens, and what a pointer points to has been stored when the marker is reached.  A tracer
 *	sees size and sign as the compiler does: a char is one byte.  For a bit-field it sees the integer that
 *	holds it: the declared type, or with GCC in C the smallest that is wide enough.
 *
 *	With many arguments and few free registers GCC may report "'asm' operand has impossible constraints": pass
 *	variables instead of expressions, or define STAP_SDT_ARG_CONSTRAINT (default: nor, a constant, a
 *	place in memory or a register) before including this file.  Tracers cannot read the operands that
 *	-masm=intel produces.
 *
 * Semaphores: compute arguments only for a tracer
 *
 *	A semaphore is a counter of the tracers that watch a marker; the kernel keeps it.  Define
 *	_SDT_HAS_SEMAPHORES before including this file, and, for *every* marker of the file that includes it,
 *	a variable named PROVIDER_NAME_semaphore:
 *
 *		#define _SDT_HAS_SEMAPHORES 1
 *		#include <sys/sdt.h>
 *
 *		unsigned short myserv_query__receive_semaphore __attribute__((section(".probes")));
 *
 *		if (__builtin_expect(myserv_query__receive_semaphore, 0))
 *			DTRACE_PROBE2(myserv, query__receive, client, count_rows(query));
 *
 *	SDT_ENABLED(myserv, query__receive, 8@_SDT_ANY 8@_SDT_ANY) is the same question, 1 or 0, and is itself a
 *	place of the marker for tracers, with arguments that mean nothing: a marker that the function only asks for
 *	can be watched, too.  That place is jumped over, so that no event comes from it.
 *
 *	`dtrace -h` and `dtrace -G` write all this from a provider definition.  In C++ the variable is in the
 *	global namespace.  Without -fPIC, or if it is declared with visibility("hidden"), a reference to it
 *	costs nothing.
 *
 * Assembly
 *
 *	In a .S file the same macros take operands in the form of the note, SIZE@OPERAND, the size negative if
 *	signed:
 *
 *		STAP_PROBE2(libc, longjmp, 8@%rdi, -4@%esi)
 *
 *	In an asm statement of C or C++, the marker is a string to put between the others:
 *
 *		asm ("cpuid\n"
 *		     STAP_PROBE_ASM(myserv, cpu, -4@%%eax 4@%%ebx)
 *		     : "=a" (a), "=b" (b) : "0" (leaf) : "ecx", "edx");
 *
 *	and the compiler can supply the operands (count, then values; at most five other operands remain):
 *
 *		asm ("syscall\n"
 *		     STAP_PROBE_ASM(myserv, called, STAP_PROBE_ASM_TEMPLATE(2))
 *		     : "=a" (ret) : "0" (nr), STAP_PROBE_ASM_OPERANDS(2, nr, who) : "rcx", "r11", "memory");
 *
 *	There "memory" makes the compiler store what the pointers point to.
 *
 * Needs GCC or clang, C99 or C++98 and later, and the GNU assembler or clang's own.  Tested for x86-64, i386,
 * aarch64 and riscv64.  Names that begin with _SDT_ are private to this file.  The notes equal those of SystemTap's
 * header of the same name except for enumerations with negative values, which it treats as unsigned in C++.
 *
 * The note
 *
 *	owner "stapsdt", type 3; then, each address as wide as a pointer:
 *
 *		address of the nop | of _.stapsdt.base | of the semaphore or 0 | provider \0 name \0 arguments \0
 *
 *	The base is one byte in a loaded section: prelinkers move it together with the text but do not update
 *	notes, so the base's actual address minus that in the note is the offset of all addresses.  Arguments are
 *	separated by spaces; each is [-]SIZE[f]@OPERAND: minus if signed, f if floating, OPERAND as the
 *	assembler writes it.
 */
#ifndef _SYS_SDT_H
#define _SYS_SDT_H 1

/*
 * The same lines are used in assembly, where each ends with a semicolon, and in asm statements of C, where each
 * becomes a string that ends with a newline.  Provider, name and arguments are expanded before they are quoted.
 */
#ifdef __ASSEMBLER__
# define _SDT_LINE(...)		__VA_ARGS__ ;
# define _SDT_STRING(...)	.ascii _SDT_QUOTED(__VA_ARGS__) ; .byte 0 ;
# define _SDT_QUOTED(...)	#__VA_ARGS__
#else
# define _SDT_LINE(...)		_SDT_LINE_(__VA_ARGS__)
# define _SDT_LINE_(...)	#__VA_ARGS__ "\n"
# define _SDT_STRING(...)	".ascii " _SDT_QUOTED(__VA_ARGS__) "; .byte 0\n"
# define _SDT_QUOTED(...)	"\"" #__VA_ARGS__ "\""
#endif

#ifdef __LP64__
# define _SDT_ADDRESS	.8byte
#else
# define _SDT_ADDRESS	.4byte
#endif

#if defined __x86_64__ && defined SDT_NO_RED_ZONE
# define _SDT_NOP	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00	/* nopl 0(%rax,%rax,1) */
#else
# define _SDT_NOP	nop
#endif

#ifdef _SDT_HAS_SEMAPHORES
# define _SDT_SEMAPHORE(provider, name)	_SDT_SEMAPHORE_(provider, name)
# define _SDT_SEMAPHORE_(provider, name) provider##_##name##_semaphore
#else
# define _SDT_SEMAPHORE(provider, name)	0
#endif

/*
 * The nop and its note.  "?" puts the note into the COMDAT group of the function around it, if there is one,
 * so that both are kept or dropped together.
 */
#define _SDT_NOTE(provider, name, ...)						\
	_SDT_LINE(990:	_SDT_NOP)						\
	_SDT_LINE(	.pushsection .note.stapsdt, "?", "note")		\
	_SDT_LINE(	.balign 4)						\
	_SDT_LINE(	.4byte 8, 992f - 991f, 3)				\
	_SDT_LINE(	.asciz "stapsdt")					\
	_SDT_LINE(991:	_SDT_ADDRESS 990b)					\
	_SDT_LINE(	_SDT_ADDRESS _.stapsdt.base)				\
	_SDT_LINE(	_SDT_ADDRESS _SDT_SEMAPHORE(provider, name))		\
	_SDT_STRING(provider)							\
	_SDT_STRING(name)							\
	_SDT_STRING(__VA_ARGS__)						\
	_SDT_LINE(992:	.balign 4)						\
	_SDT_LINE(	.popsection)

/* The base, once in each object file. */
#define _SDT_BASE								\
	_SDT_LINE(	.ifndef _.stapsdt.base)					\
	_SDT_LINE(	.pushsection .stapsdt.base, "aG", "progbits", .stapsdt.base, comdat) \
	_SDT_LINE(	.weak _.stapsdt.base)					\
	_SDT_LINE(	.hidden _.stapsdt.base)					\
	_SDT_LINE(_.stapsdt.base: .space 1)					\
	_SDT_LINE(	.size _.stapsdt.base, 1)				\
	_SDT_LINE(	.popsection)						\
	_SDT_LINE(	.endif)

#define _SDT_MARKER(provider, name, ...) _SDT_NOTE(provider, name, __VA_ARGS__) _SDT_BASE

#ifdef __ASSEMBLER__

#define STAP_PROBE(p, n)	_SDT_MARKER(p, n, )
#define STAP_PROBE1(p, n, a)	_SDT_MARKER(p, n, a)
#define STAP_PROBE2(p, n, a, b)	_SDT_MARKER(p, n, a b)
#define STAP_PROBE3(p, n, a, b, c)		_SDT_MARKER(p, n, a b c)
#define STAP_PROBE4(p, n, a, b, c, d)		_SDT_MARKER(p, n, a b c d)
#define STAP_PROBE5(p, n, a, b, c, d, e)	_SDT_MARKER(p, n, a b c d e)
#define STAP_PROBE6(p, n, a, b, c, d, e, f)	_SDT_MARKER(p, n, a b c d e f)
#define STAP_PROBE7(p, n, a, b, c, d, e, f, g)	_SDT_MARKER(p, n, a b c d e f g)
#define STAP_PROBE8(p, n, a, b, c, d, e, f, g, h) \
	_SDT_MARKER(p, n, a b c d e f g h)
#define STAP_PROBE9(p, n, a, b, c, d, e, f, g, h, i) \
	_SDT_MARKER(p, n, a b c d e f g h i)
#define STAP_PROBE10(p, n, a, b, c, d, e, f, g, h, i, j) \
	_SDT_MARKER(p, n, a b c d e f g h i j)
#define STAP_PROBE11(p, n, a, b, c, d, e, f, g, h, i, j, k) \
	_SDT_MARKER(p, n, a b c d e f g h i j k)
#define STAP_PROBE12(p, n, a, b, c, d, e, f, g, h, i, j, k, l) \
	_SDT_MARKER(p, n, a b c d e f g h i j k l)

#else /* C, C++ */

/*
 * Where the compiler may leave an argument.  On i386 a register is written by its full name, since a char may
 * be in one that has no name for its low byte.
 */
#ifndef STAP_SDT_ARG_CONSTRAINT
# if defined __riscv && defined __clang__
#  define STAP_SDT_ARG_CONSTRAINT nmr	/* LLVM has no "o" there */
# else
#  define STAP_SDT_ARG_CONSTRAINT nor
# endif
#endif
#ifdef __i386__
# define _SDT_OPERAND_NAME(n)	%k[sdt_a##n]
#else
# define _SDT_OPERAND_NAME(n)	%[sdt_a##n]
#endif

#ifdef __cplusplus

/*
 * A type's sign and whether it is floating.  A type that is not arithmetic counts as unsigned.  _sdt_value is
 * never called; its result type is that of an array, function, bit-field or reference as a value.
 */
extern "C++" {
template <class T> T _sdt_value(T);
template <bool is_enum, class T> struct _sdt_kind { enum { is_signed = 0, is_float = 0 }; };
template <class T> struct _sdt_type : _sdt_kind<__is_enum(T), T> { };
template <class T> struct _sdt_kind<true, T> : _sdt_type<__underlying_type(T)> { };
#define _SDT_ARITHMETIC(T, sign, floating) \
template <> struct _sdt_kind<false, T> { enum { is_signed = sign, is_float = floating }; };
#ifndef __CHAR_UNSIGNED__
_SDT_ARITHMETIC(char, 1, 0)
#endif
#ifndef __WCHAR_UNSIGNED__
_SDT_ARITHMETIC(wchar_t, 1, 0)
#endif
_SDT_ARITHMETIC(signed char, 1, 0)
_SDT_ARITHMETIC(short, 1, 0)
_SDT_ARITHMETIC(int, 1, 0)
_SDT_ARITHMETIC(long, 1, 0)
__extension__ _SDT_ARITHMETIC(long long, 1, 0)
#ifdef __SIZEOF_INT128__
__extension__ _SDT_ARITHMETIC(__int128, 1, 0)
#endif
_SDT_ARITHMETIC(float, 0, 1)
_SDT_ARITHMETIC(double, 0, 1)
_SDT_ARITHMETIC(long double, 0, 1)
#undef _SDT_ARITHMETIC
}
# define _SDT_TYPE(x)		__typeof__(_sdt_value(x))
# define _SDT_IS_SIGNED(x)	_sdt_type<_SDT_TYPE(x)>::is_signed
# define _SDT_IS_FLOAT(x)	_sdt_type<_SDT_TYPE(x)>::is_float
# define _SDT_SIZE(x)		int(sizeof(_SDT_TYPE(x)))

#else /* C */

/*
 * The right operand of a comma is a value: arrays and functions become pointers.  Unlike other operators it
 * does not promote a char to int, and it allows sizeof and typeof of a bit-field.
 */
# define _SDT_VALUE(x)		((void)0, (x))
# define _SDT_TYPE(x)		__typeof__(_SDT_VALUE(x))
/*
 * The type classes of GCC and clang: 1 to 4 are integers, 8 is floating.  Other types are treated as unsigned
 * integers, since they may not be comparable.
 */
# define _SDT_CLASS(x)		__builtin_classify_type(_SDT_VALUE(x))
# define _SDT_IS_INTEGER(x)	(_SDT_CLASS(x) >= 1 && _SDT_CLASS(x) <= 4)
# define _SDT_INTEGER(x)	__typeof__(__builtin_choose_expr(_SDT_IS_INTEGER(x), _SDT_VALUE(x), 0u))
# define _SDT_IS_SIGNED(x)	((_SDT_INTEGER(x))-1 < (_SDT_INTEGER(x))1)
# define _SDT_IS_FLOAT(x)	(_SDT_CLASS(x) == 8)
# define _SDT_SIZE(x)		(int)sizeof(_SDT_TYPE(x))

#endif /* C */

/*
 * An argument is two operands, its place and its size; GCC allows at most 30 in one statement, so one mask
 * tells for all which are floating.  The numbers are passed negated, because %n prints a constant negated and
 * without punctuation on every machine, while %c means other things on some.
 */
#define _SDT_NEGATED_SIZE(x)	((_SDT_IS_SIGNED(x) ? 1 : -1) * _SDT_SIZE(x))
/* clang refuses a bit-field as an operand that may be in memory, but not its value. */
#if defined __clang__ && defined __cplusplus
# define _SDT_INPUT(x)		static_cast<_SDT_TYPE(x)>(x)
#elif defined __clang__
# define _SDT_INPUT(x)		__builtin_choose_expr(_SDT_IS_INTEGER(x), _SDT_VALUE(x), (x))
#else
# define _SDT_INPUT(x)		(x)
#endif
#define _SDT_CONSTRAINT(c)	_SDT_CONSTRAINT_(c)
#define _SDT_CONSTRAINT_(c)	#c
#define _SDT_ARG(n, x)							\
	[sdt_s##n] "n" (_SDT_NEGATED_SIZE(x)),				\
	[sdt_a##n] _SDT_CONSTRAINT(STAP_SDT_ARG_CONSTRAINT) (_SDT_INPUT(x))
#define _SDT_FLOAT(n, x)	(_SDT_IS_FLOAT(x) ? 1 << (n) : 0)
#define _SDT_FLOATS(mask)	[sdt_floats] "n" (-(mask))

/*
 * The text of an argument.  It is inside the quotes of .ascii, and leaves them to write an "f" or nothing:
 *	.ascii "SIZE"; .fill (MASK >> n) & 1, 1, 'f'; .ascii "@OPERAND"
 * (About the semicolons, see _SDT_WEIGHT.)
 */
#define _SDT_TEXT_1	%n[sdt_s1]";;;; .fill (%n[sdt_floats] >> 1) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(1)
#define _SDT_TEXT_2	%n[sdt_s2]";;;; .fill (%n[sdt_floats] >> 2) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(2)
#define _SDT_TEXT_3	%n[sdt_s3]";;;; .fill (%n[sdt_floats] >> 3) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(3)
#define _SDT_TEXT_4	%n[sdt_s4]";;;; .fill (%n[sdt_floats] >> 4) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(4)
#define _SDT_TEXT_5	%n[sdt_s5]";;;; .fill (%n[sdt_floats] >> 5) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(5)
#define _SDT_TEXT_6	%n[sdt_s6]";;;; .fill (%n[sdt_floats] >> 6) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(6)
#define _SDT_TEXT_7	%n[sdt_s7]";;;; .fill (%n[sdt_floats] >> 7) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(7)
#define _SDT_TEXT_8	%n[sdt_s8]";;;; .fill (%n[sdt_floats] >> 8) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(8)
#define _SDT_TEXT_9	%n[sdt_s9]";;;; .fill (%n[sdt_floats] >> 9) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(9)
#define _SDT_TEXT_10	%n[sdt_s10]";;;; .fill (%n[sdt_floats] >> 10) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(10)
#define _SDT_TEXT_11	%n[sdt_s11]";;;; .fill (%n[sdt_floats] >> 11) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(11)
#define _SDT_TEXT_12	%n[sdt_s12]";;;; .fill (%n[sdt_floats] >> 12) & 1, 1, 102; .ascii "@_SDT_OPERAND_NAME(12)

#define STAP_PROBE_ASM_TEMPLATE(n)	_SDT_TEMPLATE_##n
#define _SDT_TEMPLATE_0		"; .ascii "
#define _SDT_TEMPLATE_1		_SDT_TEXT_1
#define _SDT_TEMPLATE_2		_SDT_TEMPLATE_1 _SDT_TEXT_2
#define _SDT_TEMPLATE_3		_SDT_TEMPLATE_2 _SDT_TEXT_3
#define _SDT_TEMPLATE_4		_SDT_TEMPLATE_3 _SDT_TEXT_4
#define _SDT_TEMPLATE_5		_SDT_TEMPLATE_4 _SDT_TEXT_5
#define _SDT_TEMPLATE_6		_SDT_TEMPLATE_5 _SDT_TEXT_6
#define _SDT_TEMPLATE_7		_SDT_TEMPLATE_6 _SDT_TEXT_7
#define _SDT_TEMPLATE_8		_SDT_TEMPLATE_7 _SDT_TEXT_8
#define _SDT_TEMPLATE_9		_SDT_TEMPLATE_8 _SDT_TEXT_9
#define _SDT_TEMPLATE_10	_SDT_TEMPLATE_9 _SDT_TEXT_10
#define _SDT_TEMPLATE_11	_SDT_TEMPLATE_10 _SDT_TEXT_11
#define _SDT_TEMPLATE_12	_SDT_TEMPLATE_11 _SDT_TEXT_12

#define _SDT_PLACES_1(a)	_SDT_ARG(1, a)
#define _SDT_PLACES_2(a, b)	_SDT_PLACES_1(a), _SDT_ARG(2, b)
#define _SDT_PLACES_3(a, b, c)	_SDT_PLACES_2(a, b), _SDT_ARG(3, c)
#define _SDT_PLACES_4(a, b, c, d)	_SDT_PLACES_3(a, b, c), _SDT_ARG(4, d)
#define _SDT_PLACES_5(a, b, c, d, e)	_SDT_PLACES_4(a, b, c, d), _SDT_ARG(5, e)
#define _SDT_PLACES_6(a, b, c, d, e, f)	_SDT_PLACES_5(a, b, c, d, e), _SDT_ARG(6, f)
#define _SDT_PLACES_7(a, b, c, d, e, f, g)	_SDT_PLACES_6(a, b, c, d, e, f), _SDT_ARG(7, g)
#define _SDT_PLACES_8(a, b, c, d, e, f, g, h) \
	_SDT_PLACES_7(a, b, c, d, e, f, g), _SDT_ARG(8, h)
#define _SDT_PLACES_9(a, b, c, d, e, f, g, h, i) \
	_SDT_PLACES_8(a, b, c, d, e, f, g, h), _SDT_ARG(9, i)
#define _SDT_PLACES_10(a, b, c, d, e, f, g, h, i, j) \
	_SDT_PLACES_9(a, b, c, d, e, f, g, h, i), _SDT_ARG(10, j)
#define _SDT_PLACES_11(a, b, c, d, e, f, g, h, i, j, k) \
	_SDT_PLACES_10(a, b, c, d, e, f, g, h, i, j), _SDT_ARG(11, k)
#define _SDT_PLACES_12(a, b, c, d, e, f, g, h, i, j, k, l) \
	_SDT_PLACES_11(a, b, c, d, e, f, g, h, i, j, k), _SDT_ARG(12, l)

#define _SDT_MASK_1(a)		_SDT_FLOAT(1, a)
#define _SDT_MASK_2(a, b)	_SDT_MASK_1(a) | _SDT_FLOAT(2, b)
#define _SDT_MASK_3(a, b, c)	_SDT_MASK_2(a, b) | _SDT_FLOAT(3, c)
#define _SDT_MASK_4(a, b, c, d)	_SDT_MASK_3(a, b, c) | _SDT_FLOAT(4, d)
#define _SDT_MASK_5(a, b, c, d, e)	_SDT_MASK_4(a, b, c, d) | _SDT_FLOAT(5, e)
#define _SDT_MASK_6(a, b, c, d, e, f)	_SDT_MASK_5(a, b, c, d, e) | _SDT_FLOAT(6, f)
#define _SDT_MASK_7(a, b, c, d, e, f, g)	_SDT_MASK_6(a, b, c, d, e, f) | _SDT_FLOAT(7, g)
#define _SDT_MASK_8(a, b, c, d, e, f, g, h)	_SDT_MASK_7(a, b, c, d, e, f, g) | _SDT_FLOAT(8, h)
#define _SDT_MASK_9(a, b, c, d, e, f, g, h, i) \
	_SDT_MASK_8(a, b, c, d, e, f, g, h) | _SDT_FLOAT(9, i)
#define _SDT_MASK_10(a, b, c, d, e, f, g, h, i, j) \
	_SDT_MASK_9(a, b, c, d, e, f, g, h, i) | _SDT_FLOAT(10, j)
#define _SDT_MASK_11(a, b, c, d, e, f, g, h, i, j, k) \
	_SDT_MASK_10(a, b, c, d, e, f, g, h, i, j) | _SDT_FLOAT(11, k)
#define _SDT_MASK_12(a, b, c, d, e, f, g, h, i, j, k, l) \
	_SDT_MASK_11(a, b, c, d, e, f, g, h, i, j, k) | _SDT_FLOAT(12, l)

#define STAP_PROBE_ASM_OPERANDS(n, ...)	_SDT_OPERANDS_##n(__VA_ARGS__)
#define _SDT_OPERANDS_0()		_SDT_FLOATS(0)
#define _SDT_OPERANDS_1(...)		_SDT_FLOATS(_SDT_MASK_1(__VA_ARGS__)), _SDT_PLACES_1(__VA_ARGS__)
#define _SDT_OPERANDS_2(...)		_SDT_FLOATS(_SDT_MASK_2(__VA_ARGS__)), _SDT_PLACES_2(__VA_ARGS__)
#define _SDT_OPERANDS_3(...)		_SDT_FLOATS(_SDT_MASK_3(__VA_ARGS__)), _SDT_PLACES_3(__VA_ARGS__)
#define _SDT_OPERANDS_4(...)		_SDT_FLOATS(_SDT_MASK_4(__VA_ARGS__)), _SDT_PLACES_4(__VA_ARGS__)
#define _SDT_OPERANDS_5(...)		_SDT_FLOATS(_SDT_MASK_5(__VA_ARGS__)), _SDT_PLACES_5(__VA_ARGS__)
#define _SDT_OPERANDS_6(...)		_SDT_FLOATS(_SDT_MASK_6(__VA_ARGS__)), _SDT_PLACES_6(__VA_ARGS__)
#define _SDT_OPERANDS_7(...)		_SDT_FLOATS(_SDT_MASK_7(__VA_ARGS__)), _SDT_PLACES_7(__VA_ARGS__)
#define _SDT_OPERANDS_8(...)		_SDT_FLOATS(_SDT_MASK_8(__VA_ARGS__)), _SDT_PLACES_8(__VA_ARGS__)
#define _SDT_OPERANDS_9(...)		_SDT_FLOATS(_SDT_MASK_9(__VA_ARGS__)), _SDT_PLACES_9(__VA_ARGS__)
#define _SDT_OPERANDS_10(...)	_SDT_FLOATS(_SDT_MASK_10(__VA_ARGS__)), _SDT_PLACES_10(__VA_ARGS__)
#define _SDT_OPERANDS_11(...)	_SDT_FLOATS(_SDT_MASK_11(__VA_ARGS__)), _SDT_PLACES_11(__VA_ARGS__)
#define _SDT_OPERANDS_12(...)	_SDT_FLOATS(_SDT_MASK_12(__VA_ARGS__)), _SDT_PLACES_12(__VA_ARGS__)

#define STAP_PROBE_ASM(provider, name, ...)	_SDT_MARKER(provider, name, __VA_ARGS__)

/*
 * Only the note refers to the semaphore, and link-time optimisation would drop or rename a variable that only
 * assembly uses, so the marker has it as an operand.  GCC takes the address by "X" and emits no code for it.
 */
#ifdef _SDT_HAS_SEMAPHORES
# define _SDT_USE_SEMAPHORE(provider, name) \
	__asm__ __volatile__ ("" :: _SDT_ADDRESS_OF(_SDT_SEMAPHORE(provider, name)))
# if defined __clang__ || !defined __OPTIMIZE__
#  define _SDT_ADDRESS_OF(variable)	"m" (variable)
# else
#  define _SDT_ADDRESS_OF(variable)	"X" (&variable)
# endif
#else
# define _SDT_USE_SEMAPHORE(provider, name) (void)0
#endif

/*
 * Compilers estimate the size of an asm statement for inlining by its lines and semicolons.  These, and the
 * empty ones in the templates, make 41, 45, 50, 55 ... for no argument, one, two, three, like SystemTap's
 * header, so that a program that changes headers keeps the same inlining and the same sites.
 */
#define _SDT_WEIGHT	"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"

/*
 * "memory": a tracer follows pointers, so what they point to must have been stored; the compiler would omit
 * stores to a local object that only the tracer reads.  In the marker's own statement it would keep the
 * compiler from using memory as an operand.
 */
#define _SDT_PROBE(provider, name, template, ...)					\
	do {										\
		_SDT_USE_SEMAPHORE(provider, name);					\
		__asm__ __volatile__ (_SDT_NOTE(provider, name, template) _SDT_WEIGHT :: __VA_ARGS__); \
		__asm__ __volatile__ (_SDT_BASE ::: "memory");				\
	} while (0)

/*
 * The nop of a question stands behind a jump over it, and only who is watched comes that far.  On other machines
 * the question has no place of its own.
 */
#if defined __x86_64__
# define _SDT_ANY	%rax
# define _SDT_OVER	_SDT_LINE(jmp 994f)
#elif defined __i386__
# define _SDT_ANY	%eax
# define _SDT_OVER	_SDT_LINE(jmp 994f)
#elif defined __aarch64__
# define _SDT_ANY	x0
# define _SDT_OVER	_SDT_LINE(b 994f)
#elif defined __riscv
# define _SDT_ANY	a0
# define _SDT_OVER	_SDT_LINE(j 994f)
#endif
#ifdef _SDT_HAS_SEMAPHORES
# ifdef _SDT_OVER
#  define SDT_ENABLED(provider, name, ...)						\
	(__builtin_expect(_SDT_SEMAPHORE(provider, name), 0) && __extension__ ({	\
		_SDT_USE_SEMAPHORE(provider, name);					\
		__asm__ __volatile__ (_SDT_OVER _SDT_NOTE(provider, name, __VA_ARGS__)	\
				      _SDT_LINE(994:) _SDT_BASE);			\
		1;									\
	}))
# else
#  define SDT_ENABLED(provider, name, ...) (__builtin_expect(_SDT_SEMAPHORE(provider, name), 0) != 0)
# endif
#else
# define SDT_ENABLED(provider, name, ...) 1
#endif

#define STAP_PROBE(p, n)	_SDT_PROBE(p, n, _SDT_TEMPLATE_0, _SDT_OPERANDS_0())
#define STAP_PROBE1(p, n, a) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_1, _SDT_OPERANDS_1(a))
#define STAP_PROBE2(p, n, a, b) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_2, _SDT_OPERANDS_2(a, b))
#define STAP_PROBE3(p, n, a, b, c) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_3, _SDT_OPERANDS_3(a, b, c))
#define STAP_PROBE4(p, n, a, b, c, d) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_4, _SDT_OPERANDS_4(a, b, c, d))
#define STAP_PROBE5(p, n, a, b, c, d, e) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_5, _SDT_OPERANDS_5(a, b, c, d, e))
#define STAP_PROBE6(p, n, a, b, c, d, e, f) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_6, _SDT_OPERANDS_6(a, b, c, d, e, f))
#define STAP_PROBE7(p, n, a, b, c, d, e, f, g) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_7, _SDT_OPERANDS_7(a, b, c, d, e, f, g))
#define STAP_PROBE8(p, n, a, b, c, d, e, f, g, h) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_8, _SDT_OPERANDS_8(a, b, c, d, e, f, g, h))
#define STAP_PROBE9(p, n, a, b, c, d, e, f, g, h, i) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_9, _SDT_OPERANDS_9(a, b, c, d, e, f, g, h, i))
#define STAP_PROBE10(p, n, a, b, c, d, e, f, g, h, i, j) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_10, _SDT_OPERANDS_10(a, b, c, d, e, f, g, h, i, j))
#define STAP_PROBE11(p, n, a, b, c, d, e, f, g, h, i, j, k) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_11, _SDT_OPERANDS_11(a, b, c, d, e, f, g, h, i, j, k))
#define STAP_PROBE12(p, n, a, b, c, d, e, f, g, h, i, j, k, l) \
	_SDT_PROBE(p, n, _SDT_TEMPLATE_12, _SDT_OPERANDS_12(a, b, c, d, e, f, g, h, i, j, k, l))

/* The arguments push the list of names back, so that the 15th element is the name of the right macro. */
#define STAP_PROBEV(...)									\
	_SDT_15TH(__VA_ARGS__, STAP_PROBE12, STAP_PROBE11, STAP_PROBE10, STAP_PROBE9,		\
		  STAP_PROBE8, STAP_PROBE7, STAP_PROBE6, STAP_PROBE5, STAP_PROBE4, STAP_PROBE3,	\
		  STAP_PROBE2, STAP_PROBE1, STAP_PROBE, )(__VA_ARGS__)
#define _SDT_15TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, ...)	o

#endif /* C, C++ */

#define DTRACE_PROBE	STAP_PROBE
#define DTRACE_PROBE1	STAP_PROBE1
#define DTRACE_PROBE2	STAP_PROBE2
#define DTRACE_PROBE3	STAP_PROBE3
#define DTRACE_PROBE4	STAP_PROBE4
#define DTRACE_PROBE5	STAP_PROBE5
#define DTRACE_PROBE6	STAP_PROBE6
#define DTRACE_PROBE7	STAP_PROBE7
#define DTRACE_PROBE8	STAP_PROBE8
#define DTRACE_PROBE9	STAP_PROBE9
#define DTRACE_PROBE10	STAP_PROBE10
#define DTRACE_PROBE11	STAP_PROBE11
#define DTRACE_PROBE12	STAP_PROBE12

#endif /* _SYS_SDT_H */
