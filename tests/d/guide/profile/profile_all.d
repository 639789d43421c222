/* profile fires with the address it interrupts: arg0 in the kernel or arg1 in a process. */
profile-997 /arg0 || arg1/ { ok = 1; }
/* Once, wherever: profile fires on each processor, and may do so on another one before exit() is seen. */
tick-1ms /ok/ { trace("yes"); exit(0); }
/* @@output
yes
*/
