/*
 * Strings that are built piece by piece: their work area, and the format of a piece.
 */
#ifndef DTAP_BPF_RT_PUT_H
#define DTAP_BPF_RT_PUT_H

/* The work area: state, then the string, with room for twice the size of one and 8 bytes. */
enum { PUT_STATE = 128 };

/* A piece's format (look): width | precision << 16 | enum fmt_flag << 32 | letter << 40. */
enum {
	PUT_PREC_SHIFT = 16, PUT_FLAGS_SHIFT = 32, PUT_LETTER_SHIFT = 40,
	PUT_MAX = 0x7fff,		/* of width and precision */
	PUT_NO_PREC = 0xffff,
};

#endif
