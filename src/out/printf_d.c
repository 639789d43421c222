/*
 * D's conversions, as in the DTrace guide, "Output Formatting", and libdtrace.
 *
 * An integer has the size and sign of its type: %d of an unsigned value prints it unsigned, %x of an int
 * prints 32 bits.  A size prefix converts first, as a C cast would, and makes %d signed.  %p has no 0x.  %a prints
 * the kernel symbol of an address, %A the symbol of a result of uaddr() or a similar function; without a symbol both
 * print the number, with 0x.
 */
#include "out/printf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "out/names.h"
#include "out/sink.h"

/* @v as an integer of @width bytes. */
static int64_t cast(int64_t v, unsigned int width, bool sign)
{
	switch (width) {
	case 1:
		return sign ? (int8_t)v : (uint8_t)v;
	case 2:
		return sign ? (int16_t)v : (uint16_t)v;
	case 4:
		return sign ? (int64_t)(int32_t)v : (int64_t)(uint32_t)v;
	default:
		return v;
	}
}

/* %P: the service at a port, from services(5), or the port's number. */
static void put_port(struct out_sink *s, const struct out_spec *spec, uint16_t port)
{
	struct servent entry, *found = NULL;
	char buf[1024], number[8];

	snprintf(number, sizeof(number), "%u", port);
	if (getservbyport_r(htons(port), NULL, &entry, buf, sizeof(buf), &found))
		found = NULL;
	out_field_string(s, spec, found ? found->s_name : number);
}

/* %I: the name of the host with this address, or the address. */
static void put_host(struct out_sink *s, const struct out_spec *spec, const char *address)
{
	const struct addrinfo numeric = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *info = NULL;
	char name[NI_MAXHOST];
	bool known = !getaddrinfo(address, NULL, &numeric, &info) &&
		     !getnameinfo(info->ai_addr, info->ai_addrlen, name, sizeof(name), NULL, 0, NI_NAMEREQD);

	out_field_string(s, spec, known ? name : address);
	if (info)
		freeaddrinfo(info);
}

static int put_int(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec, int64_t v,
		   const struct ir_slot *slot)
{
	unsigned int width = c->size ? c->size : slot->width;
	struct out_spec one = { .flags = spec->flags, .width = spec->width, .prec = -1 };
	char ch = (char)v;

	switch (c->letter) {
	case 'd':
	case 'i':
		if (c->size || slot->sign)
			out_field_signed(s, spec, cast(v, width, true));
		else
			out_field_unsigned(s, spec, (uint64_t)v, 10, false);
		return 0;
	case 'u':
		out_field_unsigned(s, spec, (uint64_t)cast(v, width, false), 10, false);
		return 0;
	case 'o':
		out_field_unsigned(s, spec, (uint64_t)cast(v, width, false), 8, false);
		return 0;
	case 'x':
	case 'X':
		out_field_unsigned(s, spec, (uint64_t)cast(v, width, false), 16, c->letter == 'X');
		return 0;
	case 'P':
		put_port(s, spec, (uint16_t)v);
		return 0;
	case 'c':
		if (c->size == 4)
			out_field_rune(s, spec, (uint32_t)v);
		else
			out_field_bytes(s, &one, &ch, 1);
		return 0;
	default:
		return -EINVAL;
	}
}

/* The escapes of a D string literal. */
static const struct out_escapes d_escapes = { "\a\b\f\n\r\t\v\"\\", "abfnrtv\"\\", true };

static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
				  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* %Y and %T: nanoseconds since 1970 in local time, as "1973 Dec  3 17:20:00" or as in mail headers. */
static int put_time(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec, int64_t ns)
{
	time_t sec = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;

	if (!localtime_r(&sec, &tm))
		return -EINVAL;
	if (c->letter == 'Y')
		snprintf(text, sizeof(text), "%d %s %2d %02d:%02d:%02d", tm.tm_year + 1900, months[tm.tm_mon],
			 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	else
		snprintf(text, sizeof(text), "%s, %02d %s %d %02d:%02d:%02d %.16s", days[tm.tm_wday],
			 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec,
			 tm.tm_zone);
	out_field_string(s, spec, text);
	return 0;
}

static void put_addr(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec, uint64_t v)
{
	char text[24];

	if (c->letter == 'p') {
		out_field_unsigned(s, spec, v, 16, false);
		return;
	}
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	out_field_string(s, spec, text);
}

/* Digits after the point; further digits of a double are all 0. */
enum { FLOAT_MAX_PREC = 1100 };

/* The float or double with these bits, as printf(3) prints it. */
static void put_float(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec, uint64_t bits,
		      unsigned int width)
{
	static const struct { uint8_t flag; char text; } flags[] = { { FMT_PLUS, '+' }, { FMT_SPACE, ' ' }, { FMT_ALT, '#' } };
	char format[16] = "%", text[FLOAT_MAX_PREC + 320];	/* digits before the point, sign, exponent */
	int prec = spec->prec < 0 ? 6 : spec->prec > FLOAT_MAX_PREC ? FLOAT_MAX_PREC : spec->prec, n = 1;
	struct out_spec rest = { .flags = spec->flags & FMT_LEFT, .width = spec->width, .prec = -1 };
	double v = out_float(bits, width);
	const char *p = text;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (spec->flags & flags[i].flag)
			format[n++] = flags[i].text;
	memcpy(&format[n], ".*", 2);
	format[n + 2] = c->letter;
	n = snprintf(text, sizeof(text), format, prec, v);
	if (isfinite(v) && (spec->flags & (FMT_ZERO | FMT_LEFT)) == FMT_ZERO) {	/* zeros come after the sign */
		if (strchr("+- ", *p))
			out_putc(s, *p++);
		out_pad(s, '0', spec->width > n ? (size_t)(spec->width - n) : 0);
		rest.width = 0;
	}
	out_field_string(s, &rest, p);
}

int out_conv_d(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec,
	       const struct ir_value *v, const struct ir_slot *slot)
{
	char ch, text[512];

	if (c->kind == FMT_STRING) {
		if (v->type != IR_STR)
			return -EINVAL;
		if (c->letter == 'I')
			put_host(s, spec, v->s);
		else if (c->letter == 'S')
			out_field_escaped(s, spec, &d_escapes, v->s, strlen(v->s));
		else
			out_field_string(s, spec, v->s);
		return 0;
	}
	if (v->type != IR_INT)
		return -EINVAL;
	if (!slot->show && s->names && c->letter == 'a') {
		out_field_string(s, spec, names_kernel(s->names, (uint64_t)v->i, text, sizeof(text)));
		return 0;
	}
	if (slot->show && s->names && c->kind == FMT_ADDR && c->letter != 'p') {
		out_field_string(s, spec, names_text(s->names, slot->show, (uint64_t)v->i, text, sizeof(text)));
		return 0;
	}
	switch (c->kind) {
	case FMT_STACK:
		if (s->names)
			names_put_stack(s->names, s, (uint64_t)v->i,
					spec->width ? (unsigned int)spec->width : s->stack_indent);
		return 0;
	case FMT_INT:
		if (c->letter != 'C')
			return put_int(s, c, spec, cast(v->i, slot->width, slot->sign), slot);
		ch = (char)v->i;
		out_field_escaped(s, spec, &d_escapes, &ch, 1);
		return 0;
	case FMT_FLOAT:
		put_float(s, c, spec, (uint64_t)v->i, slot->width);
		return 0;
	case FMT_TIME:
		return put_time(s, c, spec, v->i);
	case FMT_ADDR:
		put_addr(s, c, spec, (uint64_t)cast(v->i, slot->width, false));
		return 0;
	default:
		return -EINVAL;
	}
}
