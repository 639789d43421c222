/*
 * Messages with a header, as the protocol frames them: "Content-Length: N\r\n\r\n" and N bytes.
 *
 * LSP 3.17, "Base Protocol".  What is no such header ends the connection: where the next message begins is unknown.
 */
#ifndef DTAP_CMD_LSP_FRAME_H
#define DTAP_CMD_LSP_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct frame {
	int in, out;
	struct strbuf buf;	/* read, from @at on not taken yet */
	size_t at;
	bool failed;		/* a message could not be written: the reader is gone */
};

/*
 * Wait for the next message: 1, and it is in @msg.  0: the input has ended.  A negative errno: the input cannot be
 * read; -EPROTO: a header is wrong, or -EMSGSIZE: a message is longer than @max.
 */
int frame_read(struct frame *f, size_t max, struct strbuf *msg);

/* Is there more to read at this moment? */
bool frame_is_waiting(const struct frame *f);

void frame_write(struct frame *f, const char *s, size_t len);

void frame_fini(struct frame *f);

#endif
