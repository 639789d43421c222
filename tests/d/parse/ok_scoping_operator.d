BEGIN { trace(`jiffies); trace(vmlinux`jiffies); trace(&`init_task); }
/* @@then: \[D_IDENT_UNDEF\] */
