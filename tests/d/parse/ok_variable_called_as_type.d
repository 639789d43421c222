int uint;
BEGIN { uint = 1; trace((uint) + 1); }
