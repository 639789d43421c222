/*
 * Command lines: what comes out has no more characters than what went in, and survives being quoted and split
 * again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "target/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf line = { 0 }, quoted = { 0 };
	char **words, **again;
	size_t n, m, i, total = 0;
	const char *c;

	strbuf_add(&line, (const char *)data, size);
	if (words_split(strbuf_str(&line), &words, &n)) {
		strbuf_fini(&line);
		return 0;
	}
	for (i = 0; i < n; i++) {
		total += strlen(words[i]);
		strbuf_puts(&quoted, " '");
		for (c = words[i]; *c; c++)
			if (*c == '\'')
				strbuf_puts(&quoted, "'\\''");
			else
				strbuf_putc(&quoted, *c);
		strbuf_putc(&quoted, '\'');
	}
	assert(!words[n] && total <= size);
	assert(!words_split(strbuf_str(&quoted), &again, &m) && m == n);
	for (i = 0; i < n; i++)
		assert(!strcmp(words[i], again[i]));
	free(words);
	free(again);
	strbuf_fini(&line);
	strbuf_fini(&quoted);
	return 0;
}
