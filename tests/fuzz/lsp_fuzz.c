/*
 * Any text as a document of the language server, in both languages: diagnostics at each call, and completion, hover
 * and definition at a position that the text's bytes choose.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cmd/lsp/lsp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer that cannot be written as JSON is none. */
static void judge(json_t *answer)
{
	char *text = answer ? json_dumps(answer, JSON_ENCODE_ANY) : NULL;

	if (!text)
		abort();
	free(text);
	json_decref(answer);
}

static void look(struct lsp *s, enum dtap_language language, char *text, size_t len)
{
	char uri[] = "file:///fuzz";
	struct lsp_doc doc = { .uri = uri, .path = "/fuzz", .text = text, .len = len, .language = language };
	size_t off = 0;

	for (size_t i = 0; i < len; i++)
		off = off * 31 + (unsigned char)text[i];
	off %= len + 1;
	judge(lsp_diagnostics(s, &doc));
	judge(lsp_completion(s, &doc, off));
	judge(lsp_hover(s, &doc, off));
	judge(lsp_definition(s, &doc, off));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lsp s;
	char *text = malloc(size + 1);

	if (!text || (!s.arena && !lsp_init(&s)))
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	look(&s, DTAP_D, text, size);
	look(&s, DTAP_STAP, text, size);
	free(text);
	return 0;
}
