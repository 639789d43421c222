BEGIN /(6 / 2) / 3/ { trace(1); }
