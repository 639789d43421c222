BEGIN { trace($pid); trace($uid); trace($$pid); trace($ppid + $gid); }
