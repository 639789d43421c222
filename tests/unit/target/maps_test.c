#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "target/maps.h"
#include "target/target.h"

static void sound_lines(void **state)
{
	static const char text[] =
		"00400000-00401000 r-xp 00001000 08:11 4711                               /usr/bin/a b\n"
		"7f0000000000-7f0000002000 rw-s 00000000 00:05 12   /memfd:x\\012y (deleted)\n"
		"7fff00000000-7fff00001000 ---p 00000000 00:00 0 \n"
		"7fff00001000-7fff00002000 rw-p 00000000 00:00 0                          [stack]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
	struct target_maps m;

	(void)state;
	assert_int_equal(maps_parse(text, sizeof(text) - 1, &m), 0);
	assert_int_equal(m.n, 5);
	assert_int_equal(m.v[0].start, 0x400000);
	assert_int_equal(m.v[0].end, 0x401000);
	assert_int_equal(m.v[0].off, 0x1000);
	assert_int_equal(m.v[0].dev, makedev(8, 0x11));
	assert_int_equal(m.v[0].ino, 4711);
	assert_true(m.v[0].is_readable && m.v[0].is_exec && !m.v[0].is_writable && !m.v[0].is_shared);
	assert_string_equal(m.v[0].path, "/usr/bin/a b");
	assert_string_equal(m.v[1].path, "/memfd:x\ny");
	assert_true(m.v[1].is_deleted && m.v[1].is_shared);
	assert_string_equal(m.v[2].path, "");
	assert_string_equal(m.v[3].path, "[stack]");
	assert_int_equal(m.v[4].start, 0xffffffffff600000);
	target_maps_fini(&m);
	assert_int_equal(maps_parse("", 0, &m), 0);
	assert_int_equal(m.n, 0);
	target_maps_fini(&m);
}

static void damaged_lines(void **state)
{
	static const char *const bad[] = {
		"\n", "x", "1-", "1-2", "1-2 r-xp", "1-2 r-xp 0", "1-2 r-xp 0 1:2", "1-2 r-xp 0 1:2 ", "2-1 r-xp 0 1:2 3 x",
		"1-2 r-x 0 1:2 3 x", "10000000000000000-2 r-xp 0 1:2 3", "1-2 r-xp 0 1:2 a", "1-2 r-xp 0 12 3",
		"1-2 r-xp g 1:2 3", "1 -2 r-xp 0 1:2 3", "-1-2 r-xp 0 1:2 3", "1-2 r-xp 0 1:2 18446744073709551616 x",
		"1-2 r-xp 0 1:2 3 x\n\n",
	};
	struct target_maps m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(maps_parse(bad[i], strlen(bad[i]), &m), -EBADMSG);
	assert_int_equal(maps_parse("1-2 r-xp 0 1:2 3 a\0b", 20, &m), -EBADMSG);
}

static void own(void **state)
{
	struct target *t;
	struct target_maps m;
	struct file *f;
	struct stat exe;
	bool found = false;
	size_t i;

	(void)state;
	assert_int_equal(target_attach(getpid(), &t, NULL), 0);
	assert_int_equal(target_maps(t, &m, NULL), 0);
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	for (i = 0; i < m.n; i++) {
		if (!m.v[i].ino)
			continue;
		assert_int_equal(maps_open((uint32_t)getpid(), &m.v[i], &f, NULL), 0);
		if (f->ino == exe.st_ino && f->dev == exe.st_dev && m.v[i].is_exec) {
			uintptr_t self = (uintptr_t)own;

			found = m.v[i].start <= self && self < m.v[i].end;
		}
		file_close(f);
	}
	assert_true(found);
	target_maps_fini(&m);
	target_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_lines),
		cmocka_unit_test(damaged_lines),
		cmocka_unit_test(own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
