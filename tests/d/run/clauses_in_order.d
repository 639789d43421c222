/* Clauses of one probe run in the order of the script, each under its own predicate; this-> is the firing's. */
BEGIN { this->n = 1; printf("first\n"); }
BEGIN /this->n == 1/ { printf("second %d\n", this->n); this->n = 2; }
BEGIN /this->n == 1/ { printf("not this one\n"); }
BEGIN /this->n == 2/ { printf("third %d\n", this->n); exit(0); }
END { printf("end\n"); }
/* @@output
first
second 1
third 2
end
*/
