/*
 * The configuration of dtap serve.  Each input is taken, or there is a message with the place of each mistake; what is taken
 * is as the rest of the service expects it.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/serve/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_script(const struct serve_config *c, const struct serve_script *s)
{
	assert(s->name && *s->name && s->line && s->column && s->series && s->identity && strlen(s->hash) == 64);
	assert((s->program != NULL) + (s->command != NULL) == 1);
	assert(!s->output || (s->output >= c->outputs && s->output < c->outputs + c->noutputs));
	for (size_t i = 0; i < s->nmetrics; i++)
		assert(s->metrics[i].aggregation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *said = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&said, &len);
	struct serve_config *c;

	assert(text && err);
	memcpy(text, data, size);
	c = serve_config_parse("x.yaml", text, size, err);
	fclose(err);
	assert(!!c == !len && (c || !strncmp(said, "x.yaml:", 7)));
	for (size_t i = 0; c && i < c->nscripts; i++)
		check_script(c, &c->scripts[i]);
	for (size_t i = 0; c && i < c->noutputs; i++)
		assert(c->outputs[i].target && c->outputs[i].batch && c->outputs[i].interval_ms && c->outputs[i].identity);
	assert(!c || c->nscripts);
	serve_config_drop(c);
	free(said);
	free(text);
	return 0;
}
