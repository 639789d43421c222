BEGIN { integer = 1; selfish = 2; string_x = 3; iff = 4; }
