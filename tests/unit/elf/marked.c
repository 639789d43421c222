/*
 * A program with markers for the tests, its notes written by hand so that nothing depends on whose sys/sdt.h
 * is installed: two markers with a semaphore, one of them with two sites, one marker without.
 */
#include <unistd.h>

#define SEMAPHORE(NAME) \
	extern volatile unsigned short NAME; \
	__asm__(".pushsection .probes,\"aw\",\"progbits\"\n" \
		".globl " #NAME "\n.type " #NAME ", @object\n.size " #NAME ", 2\n" \
		#NAME ": .2byte 0\n.popsection\n")

#ifdef __LP64__
#define ADDR ".8byte"
#else
#define ADDR ".4byte"
#endif

#define NOTE(PROV, NAME, SEM, ARGS) \
	__asm__ volatile("990: nop\n" \
		".pushsection .note.stapsdt,\"\",\"note\"\n" \
		".balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
		"991: .asciz \"stapsdt\"\n992: .balign 4\n" \
		"993: " ADDR " 990b, _.stapsdt.base, " SEM "\n" \
		".asciz \"" PROV "\"\n.asciz \"" NAME "\"\n.asciz \"" ARGS "\"\n" \
		"994: .balign 4\n.popsection\n" \
		".ifndef _.stapsdt.base\n" \
		".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
		".weak _.stapsdt.base\n.hidden _.stapsdt.base\n" \
		"_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n")

SEMAPHORE(marked_one_semaphore);
SEMAPHORE(marked_gc__start_semaphore);

int marked_global[4] = { 1, 2, 3, 4 };

void marked_first(void);
void marked_second(void);

__attribute__((noinline)) void marked_first(void)
{
	NOTE("marked", "one", "marked_one_semaphore", "-4@$-5 8@$7");
	NOTE("marked", "plain", "0", "");
}

__attribute__((noinline)) void marked_second(void)
{
	NOTE("marked", "one", "marked_one_semaphore", "-4@$-6 8@$8");
	NOTE("python", "gc__start", "marked_gc__start_semaphore", "-4@marked_global+4(%rip)");
}

int main(int argc, char **argv)
{
	(void)argv;
	marked_first();
	marked_second();
	if (argc > 1) {	/* tell the test that we run, and wait until it closes our input */
		char c = '\n';

		if (write(1, &c, 1) != 1)
			return 1;
		while (read(0, &c, 1) > 0)
			;
	}
	return 0;
}
