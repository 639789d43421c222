1, 23, tick-10ms { }
