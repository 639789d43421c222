BEGIN { trace(stringof(arg0)); trace(stringof arg0); }
