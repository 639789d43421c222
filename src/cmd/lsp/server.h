/*
 * The server: methods, documents, the order of answers.
 *
 * Messages are handled one after the other.  Diagnostics of a document that changed are told when nothing more waits to be
 * read, so that fast typing costs one check.
 */
#ifndef DTAP_CMD_LSP_SERVER_H
#define DTAP_CMD_LSP_SERVER_H

#include "cmd/lsp/lsp.h"

/*
 * Serve a client on the descriptors @in and @out until it ends.  0: it asked for that, as the protocol has it; 1: it did
 * not, or its messages were wrong, which is said on standard error.
 */
int server_run(struct lsp *s, int in, int out);

#endif
