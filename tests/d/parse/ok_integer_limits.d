BEGIN { trace(2147483648); trace(0xffffffffffffffff); trace(18446744073709551615); }
