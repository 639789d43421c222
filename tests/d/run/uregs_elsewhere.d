/* @@options: -q -c "/bin/kill -0 1" */
/* At a system call the arguments are in the registers of the kernel's calling convention, and the result's has -ENOSYS
   until there is one (arch/x86/entry/entry_64.S).  The program runs in user mode: its code segment's last bits are 3. */
BEGIN { begun = uregs[R_PC] != 0 && uregs[R_SP] != 0 && (uregs[R_CS] & 3) == 3; }
syscall::kill:entry /pid == $target/
{
	printf("%d %d %d %d %d\n", begun, uregs[R_RDI], (int)uregs[R_RSI], (int64_t)uregs[R_RAX], uregs[R_PC] != 0);
}
syscall::kill:return /pid == $target/ { exit(0); }
/* @@output
1 1 0 -38 1
*/
