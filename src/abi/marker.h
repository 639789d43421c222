/*
 * The numbers of the agent's markers, and macros for the rows of abi/marker.def.
 */
#ifndef DTAP_ABI_MARKER_H
#define DTAP_ABI_MARKER_H

/* A marker's number: ABI_MARKER_function__entry ... */
enum abi_marker {
#define ABI_MARKER(name, ...) ABI_MARKER_##name,
#include "abi/marker.def"
#undef ABI_MARKER
	ABI_MARKERS
};

enum abi_marker_arg { ABI_ARG_NONE, ABI_ARG_TEXT, ABI_ARG_INT, ABI_ARG_LONG, ABI_ARG_OBJECT };

enum { ABI_MARKER_ARGS = 4 };		/* the most arguments of a marker */

/* ABI_ARGS(n, f, arguments of a row): f(type, argument) for each argument, separated by commas. */
#define ABI_ARGS(n, f, ...) ABI_ARGS##n(f, __VA_ARGS__)
#define ABI_ARGS1(f, a) f a
#define ABI_ARGS2(f, a, b) f a, f b
#define ABI_ARGS3(f, a, b, c) f a, f b, f c
#define ABI_ARGS4(f, a, b, c, d) f a, f b, f c, f d

/* ABI_TEXTS(n, arguments of a row): bit k is set if argument k, from 0, is a TEXT. */
#define ABI_TEXTS(n, ...) (ABI_TEXTS##n(__VA_ARGS__))
#define ABI_TEXTS1(a) ABI_IS_TEXT a
#define ABI_TEXTS2(a, b) ABI_TEXTS1(a) | ABI_IS_TEXT b << 1
#define ABI_TEXTS3(a, b, c) ABI_TEXTS2(a, b) | ABI_IS_TEXT c << 2
#define ABI_TEXTS4(a, b, c, d) ABI_TEXTS3(a, b, c) | ABI_IS_TEXT d << 3
#define ABI_IS_TEXT(type, argument) (ABI_ARG_##type == ABI_ARG_TEXT)

#endif
