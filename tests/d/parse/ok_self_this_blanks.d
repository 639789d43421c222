BEGIN { self -> x = 1; this
->
y = 2; }
