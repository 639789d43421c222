/*
 * jansson, loaded when the language server needs it first: its functions that the server calls, under their own names, since its
 * header has inline functions and macros that call them.
 */
#ifndef DTAP_STATIC
#include <jansson.h>
#include <stdlib.h>

#include "base/library.h"

#define JANSSON(X) \
	X(json_array, array) X(json_array_append_new, array_append_new) X(json_array_get, array_get) X(json_array_size, array_size) \
	X(json_delete, delete) X(json_dump_callback, dump_callback) X(json_dumps, dumps) X(json_integer_value, integer_value) \
	X(json_loadb, loadb) X(json_null, null) X(json_object_get, object_get) X(json_object_set_new, object_set_new) \
	X(json_string, string) X(json_string_length, string_length) X(json_string_value, string_value) \
	X(json_vpack_ex, vpack_ex) X(json_vunpack_ex, vunpack_ex)

LIBRARY_DECLARE(jansson, JANSSON)
LIBRARY_DEFINE(jansson, JANSSON, "libjansson.so.4", "libjansson4")

static const struct jansson *lib(void)
{
	if (!jansson_is_there())
		exit(EXIT_FAILURE);
	return &jansson;
}

json_t *json_array(void)
{
	return lib()->array();
}

int json_array_append_new(json_t *array, json_t *value)
{
	return lib()->array_append_new(array, value);
}

json_t *json_array_get(const json_t *array, size_t index)
{
	return lib()->array_get(array, index);
}

size_t json_array_size(const json_t *array)
{
	return lib()->array_size(array);
}

void json_delete(json_t *json)
{
	lib()->delete(json);
}

int json_dump_callback(const json_t *json, json_dump_callback_t callback, void *data, size_t flags)
{
	return lib()->dump_callback(json, callback, data, flags);
}

char *json_dumps(const json_t *json, size_t flags)
{
	return lib()->dumps(json, flags);
}

json_int_t json_integer_value(const json_t *integer)
{
	return lib()->integer_value(integer);
}

json_t *json_loadb(const char *buffer, size_t buflen, size_t flags, json_error_t *error)
{
	return lib()->loadb(buffer, buflen, flags, error);
}

json_t *json_null(void)
{
	return lib()->null();
}

json_t *json_object_get(const json_t *object, const char *key)
{
	return lib()->object_get(object, key);
}

int json_object_set_new(json_t *object, const char *key, json_t *value)
{
	return lib()->object_set_new(object, key, value);
}

json_t *json_pack(const char *fmt, ...)
{
	json_t *ret;
	va_list ap;

	va_start(ap, fmt);
	ret = lib()->vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	return ret;
}

json_t *json_string(const char *value)
{
	return lib()->string(value);
}

size_t json_string_length(const json_t *string)
{
	return lib()->string_length(string);
}

const char *json_string_value(const json_t *string)
{
	return lib()->string_value(string);
}

int json_unpack(json_t *root, const char *fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = lib()->vunpack_ex(root, NULL, 0, fmt, ap);
	va_end(ap);
	return ret;
}
#endif
