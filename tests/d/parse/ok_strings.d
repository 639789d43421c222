BEGIN { trace(""); trace("a\tb\n"); trace("say \"x\""); trace("back\\slash"); trace("\101\x41"); }
