struct out { int x; };
translator struct out < int n > { };
