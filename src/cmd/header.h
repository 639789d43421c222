/*
 * dtrace -h and dtrace -G: the command line of the provider compiler, for builds.
 *
 *	dtrace -h [-C] [-D NAME[=VALUE]] [-U NAME] [-I DIR] -s FILE.d [-o FILE.h]
 *	dtrace -G [-C ...] [-32|-64] [-k] [-v] -s FILE.d [-o FILE.o] [OBJECT ...]
 *
 * -s - reads standard input, and -h -o - writes standard output.  Without -o the output is named after the
 * script and is in the current directory.  -G runs $CC with $CFLAGS (default: cc), as SystemTap's dtrace(1)
 * does; the OBJECT operands need no change on Linux and are ignored.  Options of other DTraces without a
 * meaning here are accepted: -x OPTION, -fPIC, --types, --no-pyparsing ...
 */
#ifndef DTAP_CMD_HEADER_H
#define DTAP_CMD_HEADER_H

#include <stdbool.h>

/* Is this a command line with -h or -G? */
bool header_asked(int argc, char **argv);

/* Carry it out: CMD_OK, CMD_ERROR or CMD_USAGE, with messages on standard error. */
int header_main(int argc, char **argv);

#endif
