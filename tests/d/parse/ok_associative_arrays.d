BEGIN { a[1] = 2; a[3]++; b["x", pid, 1 + 1] = a[1]; delete = 1; }
