BEGIN / 1 / /* always */ { trace(1); }
