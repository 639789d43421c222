/*
 * Restricted C for the runtime functions: no maps, no globals, no loops that the verifier would have to unroll (rt_loop
 * instead), and as little stack as possible: a program uses FRAME_SIZE of the 512 bytes already.
 *
 * A string has at most @size bytes with its NUL; it lies in a buffer of room(@size) bytes, after which 8 more are
 * readable.
 */
#ifndef DTAP_BPF_RT_RT_H
#define DTAP_BPF_RT_RT_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define RT __attribute__((noinline))

#ifdef RT_NATIVE	/* a build for the host, where the linked program defines them */
long rt_copy_str(void *dst, u32 size, const void *src);
long rt_copy(void *dst, u32 size, const void *src);
long rt_copy_from_user(void *dst, u32 size, u64 src);
long rt_loop(u32 n, void *fn, void *ctx, u64 flags);
#else
static long (*const rt_copy_str)(void *dst, u32 size, const void *src) = (void *)115;	/* probe_read_kernel_str */
static long (*const rt_copy)(void *dst, u32 size, const void *src) = (void *)113;	/* probe_read_kernel */
static long (*const rt_copy_from_user)(void *dst, u32 size, u64 src) = (void *)148;
static long (*const rt_loop)(u32 n, void *fn, void *ctx, u64 flags) = (void *)181;
#endif

s64 rt_strlen(const char *s, u64 size);
s64 rt_strcmp(const char *a, const char *b, u64 size);		/* str.c */
s64 rt_avg(const u64 *w);					/* stat.c */
s64 rt_variance(const u64 *w);

/*
 * Hide a value from the compiler, so that it keeps what the verifier must be shown.  Above all a sum: if the compiler
 * knows that no bits overlap it makes an "or", of which older verifiers (Linux 6.1) see no limit.
 */
#define rt_opaque(x) __asm__ volatile("" : "+r"(x))

/* Bytes of the buffer for a string of at most @size: whole words. */
static inline __attribute__((always_inline)) u64 room(u64 size)
{
	return (size + 7) & ~7ull;
}

/* 0x80 in each byte of @x that is 0, exactly. */
static inline __attribute__((always_inline)) u64 zero_bytes(u64 x)
{
	const u64 low7 = 0x7f7f7f7f7f7f7f7full;

	return ~(((x & low7) + low7) | x | low7);
}

/* Number of the lowest (highest) byte marked in @m, which is not 0. */
static inline __attribute__((always_inline)) u32 lowest(u64 m)
{
	m &= -m;
	return (u32)((((m - 1) & 0x0101010101010101ull) * 0x0101010101010101ull) >> 56) - 1;
}

static inline __attribute__((always_inline)) u32 highest(u64 m)
{
	m |= m >> 8;
	m |= m >> 16;
	m |= m >> 32;
	return (u32)((((m >> 7) & 0x0101010101010101ull) * 0x0101010101010101ull) >> 56) - 1;
}

/* All bits, if @v is at most @x, else 0: for searches without branches, since the verifier follows each branch. */
static inline __attribute__((always_inline)) u64 reaches(u64 v, u64 x)
{
	u64 mask = v - x - 1;

	rt_opaque(mask);
	mask = (u64)((s64)mask >> 63);
	rt_opaque(mask);
	return mask;
}

#endif
