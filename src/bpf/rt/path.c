/*
 * The path of a file.
 *
 * A dentry has a name and a parent; the root of a mount leads to its mount point.  The walk goes up, so the addresses
 * of the names are kept until it ends.
 */
#include "rt.h"

#include "path.h"

static long (*const rt_read)(void *dst, u32 size, u64 src) = (void *)113;	/* probe_read_kernel */

enum { BROKEN, COMPLETE, NAMELESS };	/* of the walk up; NAMELESS: pipes and sockets are in no directory */

struct walk {
	struct path_work *w;
	char *dst;
	u64 size;
	u64 end;
};

static inline __attribute__((always_inline)) u64 word(u64 addr)
{
	u64 v = 0;

	rt_read(&v, 8, addr);
	return v;
}

static long up(u32 k, struct walk *c)
{
	struct path_work *w = c->w;
	u64 n = w->n, next;

	if (w->dentry == word(w->mnt + w->mnt_root)) {
		u64 mount = w->mnt - w->mount_mnt;

		next = word(mount + w->mount_parent);
		if (!next || next == mount) {
			c->end = next ? COMPLETE : BROKEN;
			return 1;
		}
		w->dentry = word(mount + w->mountpoint);
		w->mnt = next + w->mount_mnt;
		return 0;
	}
	next = word(w->dentry + w->parent);
	if (next == w->dentry)
		c->end = NAMELESS;
	if (!next || next == w->dentry || n >= PATH_PARTS)
		return 1;
	w->names[n] = word(w->dentry + w->name);
	w->n = n + 1;
	w->dentry = next;
	return 0;
}

static long down(u32 k, struct walk *c)
{
	struct path_work *w = c->w;
	u64 at = w->n - 1 - k, pos = w->pos, left = c->size - pos;
	long n;

	if (at >= PATH_PARTS || pos >= c->size || left < 2)
		return 1;
	c->dst[pos++] = '/';
	left--;
	rt_opaque(left);
	if (left > c->size - pos)
		return 1;
	n = rt_copy_str(c->dst + pos, (u32)left, (const void *)w->names[at]);
	if (n < 1) {
		c->end = BROKEN;
		return 1;
	}
	w->pos = pos + (u64)n - 1;
	return 0;
}

static inline __attribute__((always_inline)) long nameless(char *dst, u64 size)
{
	if (size < 16) {
		dst[0] = '?';
		dst[1] = '\0';
		return 2;
	}
	*(u64 *)dst = 0x6e776f6e6b6e753cull;	/* "<unknown", as little-endian machines write it */
	dst[8] = '>';
	dst[9] = '\0';
	return 10;
}

/* Bytes of the string with its NUL; 0: unknown. */
RT long rt_path(char *dst, struct path_work *w, u64 size)
{
	struct walk c = { w, dst, size };
	u64 n;

	w->n = 0;
	w->pos = 0;
	rt_loop(2 * PATH_PARTS, up, &c, 0);
	n = w->n;
	if (c.end == NAMELESS)
		return nameless(dst, size);
	if (c.end == BROKEN || n > PATH_PARTS)
		return 0;
	if (!n) {
		dst[0] = '/';
		dst[1] = '\0';
		return 2;
	}
	rt_loop((u32)n, down, &c, 0);
	return c.end == COMPLETE ? (long)w->pos + 1 : 0;
}
