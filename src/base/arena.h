/*
 * Arena: memory that lives as long as one compilation (or one other owner) and goes with it.
 *
 * A pass allocates and never frees; the owner calls arena_free once.  Objects do not move.  When the
 * system has no memory left the arena calls its handler, which must not return: a half-built tree is of no
 * use to anybody, and the kernel releases what a dying tracer had armed.  The commands install a handler
 * that says so and exits; tests install one that longjmps back into the test.
 */
#ifndef DTAP_BASE_ARENA_H
#define DTAP_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new, empty arena, or NULL when there is no memory.  The caller owns it. */
struct arena *arena_new(void);

/* Release everything allocated from @a, and @a.  Accepts NULL. */
void arena_free(struct arena *a);

/* What to call when memory runs out, for all arenas; it must not return.  The default calls abort. */
void arena_on_oom(void (*handler)(void));

/* @size zeroed bytes, aligned for any type; never NULL. */
void *arena_alloc(struct arena *a, size_t size);

/* A copy of the @len bytes at @s with a NUL behind them. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_strdup(struct arena *a, const char *s);

/* printf into the arena. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/*
 * Room for one more in the array @items of *@cap elements of @size bytes, of which @n are in use: returns
 * @items, or a larger copy and updates *@cap.  The usual call is
 *	v->items = arena_grow(a, v->items, &v->cap, v->n, sizeof(*v->items));
 */
void *arena_grow(struct arena *a, void *items, size_t *cap, size_t n, size_t size);

/* Of type @type, zeroed. */
#define arena_new_of(a, type) ((type *)arena_alloc((a), sizeof(type)))

#endif
