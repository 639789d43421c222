BEGIN { trace("begin"); }
END { trace("end"); }
