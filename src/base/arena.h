/*
 * Arena: memory with the lifetime of one compilation or another owner.
 *
 * A pass allocates and never frees; the owner calls arena_free once.  Objects do not move.  When the system is out of
 * memory, the process ends (oom.h).
 */
#ifndef DTAP_BASE_ARENA_H
#define DTAP_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new, empty arena; never NULL.  The caller owns it. */
struct arena *arena_new(void);

/* Release everything allocated from @a, and @a.  Accepts NULL. */
void arena_free(struct arena *a);

/* @size zeroed bytes, aligned for any type; never NULL. */
void *arena_alloc(struct arena *a, size_t size);

/* The number of allocated bytes. */
size_t arena_used(const struct arena *a);

/* A copy of the @len bytes at @s with a NUL after them. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_strdup(struct arena *a, const char *s);

/* printf into the arena. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/*
 * Make room for one more element in the array @items of *@cap elements of @size bytes, of which @n are in use: returns
 * @items, or a larger copy and updates *@cap.  The usual call is
 *	v->items = arena_grow(a, v->items, &v->cap, v->n, sizeof(*v->items));
 */
void *arena_grow(struct arena *a, void *items, size_t *cap, size_t n, size_t size);

/* A zeroed object of type @type. */
#define arena_new_of(a, type) ((type *)arena_alloc((a), sizeof(type)))

#endif
