provider p { probe x(void *, const void *const); };
