ERROR { trace(arg4); }
