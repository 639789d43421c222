profile-997, profile:::tick-5sec, tick-1hz { }
