/* @@options: -q -c "/bin/kill -0 1" */
/* At a function's first instruction its arguments are in registers (System V ABI): the command says which they are.  The
   stack pointer points to the address that it returns to. */
pid$target::kill:entry
{
	printf("%d %d %d\n", uregs[R_RDI], (int)uregs[R_RSI], *(uint64_t *)copyin(uregs[R_SP], 8) == ucaller);
	exit(0);
}
/* @@output
1 0 1
*/
