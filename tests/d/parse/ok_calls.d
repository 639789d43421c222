BEGIN { exit(0); trace(strlen(strjoin("a", "b"))); }
