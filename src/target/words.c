#include "target/words.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/*
 * Copy the word at *@p to @to without its quotes, and terminate it by a NUL.  Returns the end of the copy,
 * or NULL when a quote is open at the end of the line.
 */
static char *copy_word(const char **p, char *to)
{
	const char *s = *p;
	char quote = 0;

	for (; *s && (quote || !is_blank(*s)); s++) {
		if (quote ? *s == quote : *s == '\'' || *s == '"') {
			quote = quote ? 0 : *s;
		} else if (*s == '\\' && quote != '\'') {
			if (!s[1])
				return NULL;
			if (quote && !strchr("$`\"\\\n", s[1]))
				*to++ = '\\';
			if (*++s != '\n')
				*to++ = *s;
		} else {
			*to++ = *s;
		}
	}
	if (quote)
		return NULL;
	*to++ = '\0';
	*p = s;
	return to;
}

/* Find the next word or the line's end; a backslash and newline count as blank. */
static const char *skip_blanks(const char *s)
{
	for (;;) {
		if (is_blank(*s))
			s++;
		else if (s[0] == '\\' && s[1] == '\n')
			s += 2;
		else
			return s;
	}
}

int words_split(const char *line, char ***ret, size_t *n)
{
	size_t len = strlen(line), max = len / 2 + 1;	/* a word and its separator take two characters */
	char **words, *to;
	size_t i = 0;

	if (max > (SIZE_MAX - len - 1) / sizeof(*words) - 1)
		return -ENOMEM;
	words = malloc((max + 1) * sizeof(*words) + len + 1);
	if (!words)
		return -ENOMEM;
	to = (char *)(words + max + 1);
	for (line = skip_blanks(line); *line; line = skip_blanks(line)) {
		words[i++] = to;
		to = copy_word(&line, to);
		if (!to) {
			free(words);
			return -EINVAL;
		}
	}
	words[i] = NULL;
	*ret = words;
	*n = i;
	return 0;
}

bool words_want_shell(const char *line)
{
	char quote = 0;

	for (; *line; line++) {
		if (*line == '\\' && quote != '\'' && line[1])
			line++;
		else if (quote ? *line == quote : *line == '\'' || *line == '"')
			quote = quote ? 0 : *line;
		else if (quote != '\'' && strchr(quote ? "$`" : "$`|&;<>(){}*?[~", *line))
			return true;
	}
	return false;
}

const char *words_flaw(const char *line)
{
	wordexp_t words;

	switch (wordexp(line, &words, WRDE_NOCMD | WRDE_UNDEF)) {
	case 0:
		wordfree(&words);
		return NULL;
	case WRDE_BADCHAR:
		return "contains illegal characters";
	case WRDE_BADVAL:
		return "contains undefined shell variables";
	case WRDE_CMDSUB:
		return "contains command substitutions";
	case WRDE_SYNTAX:
		return "contains shell syntax errors";
	default:
		return NULL;
	}
}
