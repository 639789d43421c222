BEGIN
/pid == 1/
