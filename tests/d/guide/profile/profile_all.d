/* profile fires with the address it interrupts: arg0 in the kernel or arg1 in a process. */
profile-997 /arg0 || arg1/ { ok = 1; }
profile-997 /ok/ { trace("yes"); exit(0); }
/* @@output
yes
*/
