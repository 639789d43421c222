provider glib {
	probe mem__alloc(void*, unsigned int, unsigned int, unsigned int);
	probe mem__free(void*, unsigned int);
	probe mem__realloc(void*, void*, unsigned int, unsigned int);
	probe slice__alloc(void*, unsigned int);
	probe quark__new(char *, unsigned int);
	probe source__destroy(void *);
	probe timeout__add(void *, void *, unsigned int, int, unsigned int, void *, void *);
	probe main__context__prepare(void *ctx, int priority[4], unsigned long flags);
};

provider gobject {
	probe type__new(char *, unsigned long, unsigned long);
	probe object__new(void*, unsigned long);
	probe signal__emit(unsigned int, unsigned int, void *, unsigned long);
};
