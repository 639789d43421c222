/*
 * Runs a fuzz driver on files: the corpus as a test, and a crash that libFuzzer found.  Where the driver is
 * linked with libFuzzer itself, this file is left out.
 *
 *	CC=clang meson setup build-fuzz -Db_sanitize=address,undefined -Db_lundef=false \
 *		-Dc_args=-fsanitize=fuzzer-no-link
 *	ninja -C build-fuzz tests/fuzz/elf_fuzz
 *	build-fuzz/tests/fuzz/elf_fuzz -max_total_time=300 SCRATCH tests/fuzz/corpus/elf
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0, n = 0;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	do {
		data = realloc(data, size + 65536);
		if (!data)
			abort();
		n = fread(data + size, 1, 65536, f);
		size += n;
	} while (n);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int err = 0;

	for (int i = 1; i < argc; i++)
		err |= run_file(argv[i]);
	return err;
}
