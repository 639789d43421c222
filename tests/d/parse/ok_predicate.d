BEGIN / 1 == 1 / { trace(1); }
