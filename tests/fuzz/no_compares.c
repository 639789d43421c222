/*
 * For drivers whose inputs are commands: what the program compares with what tells the fuzzer little, for there are no words
 * to be guessed, and telling it takes half of the time.  The linker has the calls come here (--wrap, meson.build).
 */
#include <stdint.h>

void __wrap___sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b);
void __wrap___sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b);
void __wrap___sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b);
void __wrap___sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b);
void __wrap___sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b);
void __wrap___sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b);
void __wrap___sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b);
void __wrap___sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b);
void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases);

void __wrap___sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_cmp4(uint32_t a, uint32_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_cmp8(uint64_t a, uint64_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_const_cmp1(uint8_t a, uint8_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_const_cmp2(uint16_t a, uint16_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_const_cmp4(uint32_t a, uint32_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_const_cmp8(uint64_t a, uint64_t b) { (void)a, (void)b; }
void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases) { (void)value, (void)cases; }
