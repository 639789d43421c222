/* Any text as a D script, parsed, checked and lowered; there are a few probes (tests/unit/d/compile.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/d/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compiled c;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	compile_text(&c, "fuzz", text, size);
	if (!c.prog != !!c.diag.errors)		/* a program or a report, never both, never neither */
		__builtin_trap();
	compiled_free(&c);
	free(text);
	return 0;
}
