BEGIN { trace(0); trace(10); trace(017); trace(0x1F); trace(0Xff); trace(1u); trace(2UL); trace(3ull); trace(4LLU); }
