/*
 * A program with the notes that "dtrace -G" of DTrace for Linux makes, written by hand: a marker whose arguments its provider
 * turns round and types, one without a type, and one of SystemTap's kind whose semaphore has no value in the file (.bss).
 */
#include <stdio.h>

#define USDT_NOTE(TYPE, FUNC, PROV, NAME, N, ARGS) \
	__asm__ volatile("990: nop\n" \
		".pushsection .note.usdt,\"\",\"note\"\n" \
		".balign 4\n.4byte 992f-991f, 994f-993f, " TYPE "\n" \
		"991: .asciz \"usdt\"\n992: .balign 4\n" \
		"993: .8byte 990b, " FUNC "\n" \
		".asciz \"" PROV "\"\n.asciz \"" NAME "\"\n.byte " N "\n.asciz \"" ARGS "\"\n" \
		"994: .balign 4\n.popsection\n")

/* Provider turned, its probe place(int, char *) : (char *, int, int); and plain(). */
__asm__(".pushsection .note.usdt,\"\",\"note\"\n"
	".balign 4\n.4byte 992f-991f, 994f-993f, 1\n"
	"991: .asciz \"prov\"\n992: .balign 4\n"
	"993: .asciz \"turned\"\n.balign 4\n.4byte 0x04040500, 0x04040500, 0x04040500, 0x04040500, 0x04040500, 2\n"
	".asciz \"place\"\n.byte 2\n.asciz \"int\"\n.asciz \"char *\"\n"
	".byte 3\n.asciz \"char *\"\n.byte 1\n.asciz \"int\"\n.byte 0\n.asciz \"int\"\n.byte 0\n.balign 4\n"
	".asciz \"plain\"\n.byte 0, 0\n.balign 4\n"
	"994: .balign 4\n.popsection\n");

unsigned short marked_bss_semaphore;

const char in_work[] = "work";

void work(const char *word, int n);

__attribute__((noinline)) void work(const char *word, int n)
{
	register const char *a __asm__("rcx") = word;
	register int b __asm__("edx") = n;

	__asm__ volatile("" : : "r"(a), "r"(b));
	USDT_NOTE("1", "in_work", "turned", "place", "2", "-4@%edx 8@%rcx");
	USDT_NOTE("2", "in_work", "turned", "place", "1", "8@%rax");
	USDT_NOTE("1", "in_work", "turned", "plain", "0", "");
	__asm__ volatile("990: nop\n"
		".pushsection .note.stapsdt,\"\",\"note\"\n"
		".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"
		"991: .asciz \"stapsdt\"\n992: .balign 4\n"
		"993: .8byte 990b, 0, marked_bss_semaphore\n"
		".asciz \"marked\"\n.asciz \"bss\"\n.asciz \"-4@%%edx\"\n"
		"994: .balign 4\n.popsection\n" : : "d"(n));
}

int main(void)
{
	for (int i = 1; i <= 3; i++)
		work(i == 2 ? "two" : "odd", i);
	printf("%d\n", marked_bss_semaphore);
	return 0;
}
