/*
 * Markers in an assembler file.
 *
 * want: none
 * want: three 8 -4 8
 * x86_64 only
 */
#include <sys/sdt.h>

	.text
	.globl	function
	.type	function, @function
function:
	STAP_PROBE(test, none)
	STAP_PROBE3(test, three, 8@%rdi, -4@$42, 8@16(%rsp))
	ret
	.size	function, . - function
	.section .note.GNU-stack, "", @progbits
