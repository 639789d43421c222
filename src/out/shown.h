/*
 * What print() shows of an object that a pointer points to: members that are zero are left out, and so is what has
 * nothing else.
 */
#ifndef DTAP_OUT_SHOWN_H
#define DTAP_OUT_SHOWN_H

struct out_sink;

/* Print @text, lines with the values of lang/format.h; a line that ends in { or [ begins a part, which } or ] ends. */
void out_shown(struct out_sink *s, const char *text);

#endif
