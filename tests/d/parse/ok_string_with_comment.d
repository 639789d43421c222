BEGIN { trace("/* no comment */"); trace("// none"); }
