/*
 * An item: bytes that are delivered alone, one request or one file each, with what is known of them.
 *
 * What is known are variables, "script=calls&host=h1&from=1764000000", with values that are escaped for an address.  An
 * address has places for them, "http://store/ingest?name={script}&from={from}", which are filled in when the item is
 * delivered: a spooled one goes to the address that is in force then.
 *
 * While it waits, in memory or on disk, an item is its length, a blank, its variables, a newline, and its bytes.
 */
#ifndef DTAP_CMD_SERVE_ITEM_H
#define DTAP_CMD_SERVE_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_pairs;
struct strbuf;

/* Escape @text for an address, or as a part of a file's name; appended to @out. */
void item_escape(const char *text, struct strbuf *out);

/* Append a variable; its value is escaped. */
void item_variable(struct strbuf *variables, const char *name, const char *value);
void item_number(struct strbuf *variables, const char *name, uint64_t value);

/* Append an item. */
void item_write(const char *variables, const struct strbuf *bytes, struct strbuf *out);

struct item {
	const char *variables;		/* in the text, up to a newline */
	size_t nvariables;
	const char *bytes;
	size_t nbytes;
};

/* The first item of @len bytes of @text.  False: there is no whole one. */
bool item_read(const char *text, size_t len, struct item *ret);

/* Append the value of a variable, as it is escaped; nothing if there is none. */
void item_value(const struct item *i, const char *name, struct strbuf *out);

/* Append @address with the variables of @i in their places. */
void item_address(const struct item *i, const char *address, struct strbuf *out);

/*
 * Is @address right: has it only places of variables that profiles have (profile.h) or @labels, and none of them in the host?
 * NULL, or what is wrong with it as a text of the heap.
 */
char *item_mistake(const char *address, const struct serve_pairs *labels);

#endif
