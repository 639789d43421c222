#include "cmd/lsp/text.h"

#include <string.h>

/* --- positions ---------------------------------------------------------------------------------------- */

/* The number of bytes of the end of a line at @off, or 0. */
static size_t newline(struct text t, size_t off)
{
	if (t.s[off] == '\n')
		return 1;
	if (t.s[off] != '\r')
		return 0;
	return off + 1 < t.len && t.s[off + 1] == '\n' ? 2 : 1;
}

/* The UTF-16 code units of the character that begins with @c: none for its further bytes. */
static size_t units(unsigned char c)
{
	return (c & 0xc0) == 0x80 ? 0 : c >= 0xf0 ? 2 : 1;
}

struct text_pos text_pos(struct text t, size_t off)
{
	struct text_pos pos = { 0 };
	size_t at = 0, end;

	while (at < t.len && at < off) {
		end = newline(t, at);
		if (end && at + end > off)	/* between \r and \n */
			break;
		if (end)
			pos = (struct text_pos){ pos.line + 1, 0 };
		else
			pos.unit += units((unsigned char)t.s[at]);
		at += end ? end : 1;
	}
	return pos;
}

size_t text_offset(struct text t, struct text_pos pos)
{
	size_t at = 0, unit = 0, end;

	for (; at < t.len && pos.line; at += end ? end : 1) {
		end = newline(t, at);
		pos.line -= end > 0;
	}
	if (pos.line)
		return t.len;
	while (at < t.len && unit < pos.unit && !newline(t, at)) {
		unit += units((unsigned char)t.s[at++]);
		while (at < t.len && !units((unsigned char)t.s[at]))
			at++;
	}
	return at;
}

size_t text_offset_of(struct text t, unsigned int line, unsigned int col)
{
	const char *nl;
	size_t at = 0;

	for (; line > 1; line--) {
		nl = memchr(t.s + at, '\n', t.len - at);
		if (!nl)
			return t.len;
		at = (size_t)(nl - t.s) + 1;
	}
	nl = memchr(t.s + at, '\n', t.len - at);
	line = 0;
	for (size_t end = nl ? (size_t)(nl - t.s) : t.len; ++line < col && at < end; at++)
		;
	return at;
}

/* --- words -------------------------------------------------------------------------------------------- */

bool text_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct text_span text_word(struct text t, size_t off)
{
	struct text_span w = { off, off };

	while (w.from && text_is_word(t.s[w.from - 1]))
		w.from--;
	while (w.to < t.len && text_is_word(t.s[w.to]))
		w.to++;
	return w;
}

/* The offset after the string that begins at @off with the quote @c, or of the end of its line: *closed is false. */
static size_t behind_string(struct text t, size_t off, char c, bool *closed)
{
	for (off++; off < t.len && t.s[off] != '\n'; off++) {
		*closed = t.s[off] == c;
		if (*closed)
			return off + 1;
		if (t.s[off] == '\\' && off + 1 < t.len && t.s[off + 1] != '\n')
			off++;
	}
	*closed = false;
	return off;
}

struct text_span text_token(struct text t, size_t off)
{
	struct text_span w = { off, off };
	bool closed;

	if (off >= t.len || newline(t, off))
		return w;
	if (t.s[off] == '"')
		w.to = behind_string(t, off, '"', &closed);
	else
		w.to++;
	if (text_is_word(t.s[off]) || t.s[off] == '$' || t.s[off] == '@')
		while (w.to < t.len && text_is_word(t.s[w.to]))
			w.to++;
	while (w.to < t.len && !units((unsigned char)t.s[w.to]))
		w.to++;
	return w;
}

/* --- what is where ------------------------------------------------------------------------------------ */

/* A walk over a script up to an offset. */
struct walk {
	struct text t;
	size_t off, at;
	bool stap;
	unsigned int depth;	/* of braces */
	bool pred;		/* D: between the slashes before a handler */
	bool probe;		/* SystemTap: after "probe" */
	size_t start;		/* of what is written outside of braces: after the last comma or handler */
};

/* The offset after what @mark ends, or -1: the text ends before. */
static size_t behind(const struct walk *w, size_t from, const char *mark)
{
	const char *at = from < w->t.len ? memmem(w->t.s + from, w->t.len - from, mark, strlen(mark)) : NULL;

	return at ? (size_t)(at - w->t.s) + strlen(mark) : (size_t)-1;
}

static bool starts(const struct walk *w, const char *mark)
{
	return w->t.len - w->at >= strlen(mark) && !memcmp(w->t.s + w->at, mark, strlen(mark));
}

/* Only blanks stand before @at on its line. */
static bool begins_line(const struct walk *w)
{
	size_t at = w->at;

	while (at && (w->t.s[at - 1] == ' ' || w->t.s[at - 1] == '\t'))
		at--;
	return !at || w->t.s[at - 1] == '\n';
}

/* The offset after the comment, string or line that begins here and is no code; @at if none does. */
static size_t skip(const struct walk *w)
{
	char c = w->t.s[w->at];

	if (c == '"' || (c == '\'' && !w->stap)) {
		bool closed;
		size_t to = behind_string(w->t, w->at, c, &closed);

		return closed || to != w->off ? to : to + 1;	/* the cursor is in what is being typed */
	}
	if (starts(w, "/*"))
		return behind(w, w->at + 2, "*/");
	if (w->stap && starts(w, "%{"))
		return behind(w, w->at + 2, "%}");
	if ((w->stap && starts(w, "//")) || (c == '#' && (w->stap || begins_line(w))))
		/* $# and @# are numbers of arguments. */
		return w->stap && c == '#' && w->at && strchr("$@", w->t.s[w->at - 1]) ? w->at : behind(w, w->at, "\n");
	return w->at;
}

/* Outside of braces. */
static void outside(struct walk *w, struct text_span word)
{
	static const char probe[] = "probe";
	char c = w->t.s[w->at];

	if (word.to > word.from) {
		if (!w->stap || (w->at && w->t.s[w->at - 1] == '.') || w->at != word.from)
			return;
		if (word.to - word.from == strlen(probe) && !memcmp(w->t.s + word.from, probe, strlen(probe))) {
			w->probe = true;
			w->start = word.to;
		} else if (starts(w, "function") || starts(w, "global") || starts(w, "private")) {
			w->probe = false;
		}
		return;
	}
	if (c == '/' && !w->stap)
		w->pred = !w->pred;
	if (c == '=' && w->stap)
		w->start = w->at + 1;
	if ((c == ',' && !w->pred) || c == ';')
		w->start = w->at + 1;
}

static void brace(struct walk *w)
{
	if (w->t.s[w->at] == '{') {
		w->depth++;
	} else if (w->depth) {
		w->depth--;
		if (!w->depth) {
			w->pred = w->probe = false;
			w->start = w->at + 1;
		}
	}
}

/* The part of a description or point before the cursor: false if blanks are in it, as in "int x". */
static bool one_piece(const struct walk *w, struct text_span *piece)
{
	size_t from = w->start;
	bool quoted = false;

	while (from < w->off && strchr(" \t\r\n", w->t.s[from]) && w->t.s[from])
		from++;
	*piece = (struct text_span){ from, w->off };
	for (; from < w->off; from++) {
		quoted ^= w->t.s[from] == '"';
		if (!quoted && w->t.s[from] && strchr(" \t\r\n/", w->t.s[from]))
			return false;
	}
	return true;
}

enum text_where text_where(struct text t, enum dtap_language language, size_t off, struct text_span *probe)
{
	struct walk w = { .t = t, .off = off, .stap = language == DTAP_STAP };

	while (w.at < off) {
		size_t to = skip(&w);
		struct text_span word;

		if (to > off)
			return !w.stap && t.s[w.at] == '#' ? TEXT_PRAGMA : TEXT_NOTHING;
		if (to > w.at) {
			if (!w.depth && !w.pred && !w.stap)
				w.start = to;
			w.at = to;
			continue;
		}
		word = text_word(t, w.at);
		if (word.from < w.at || !text_is_word(t.s[w.at]))
			word = (struct text_span){ w.at, w.at };
		if (word.to > off)
			word.to = word.from;	/* it is being typed */
		if (t.s[w.at] == '{' || t.s[w.at] == '}')
			brace(&w);
		else if (!w.depth)
			outside(&w, word);
		w.at = word.to > w.at ? word.to : w.at + 1;
	}
	if (w.depth || w.pred)
		return TEXT_CODE;
	if (w.stap ? w.probe && w.start <= off && one_piece(&w, probe) : one_piece(&w, probe))
		return TEXT_PROBE;
	return w.stap && !w.probe ? TEXT_TOP : TEXT_CODE;
}

bool text_has_option(struct text t, char letter)
{
	const char *nl = memchr(t.s, '\n', t.len);
	size_t end = nl ? (size_t)(nl - t.s) : t.len;

	if (end < 2 || t.s[0] != '#' || t.s[1] != '!')
		return false;
	for (size_t i = 2; i + 1 < end; i++) {
		if (t.s[i] != '-' || (t.s[i - 1] != ' ' && t.s[i - 1] != '\t') || t.s[i + 1] == '-')
			continue;
		for (i++; i < end && text_is_word(t.s[i]); i++)
			if (t.s[i] == letter)
				return true;
	}
	return false;
}
