/*
** What differs between Ruby's versions, and what the port reads of objects that Ruby's public headers do not name. Checked against 3.4.5.
**
** The flags are those of internal/string.h, internal/array.h and internal/imemo.h. If they change, objects are
** traced or freed wrongly: build.sh compares them with the source it builds against.
*/
#ifndef RUBY_HEAPWRIGHT_INTERFACE_H
#define RUBY_HEAPWRIGHT_INTERFACE_H

#include "internal/compilers.h"
#ifndef LIKELY
#define LIKELY(x) RB_LIKELY(x)
#define UNLIKELY(x) RB_UNLIKELY(x)
#endif
#include "internal/array.h"
#include "internal/imemo.h"
#include "internal/string.h"

#define STRING_IS_SHARED STR_SHARED
#define STRING_IS_INTERNED RSTRING_FSTR
#define ARRAY_IS_SHARED RARRAY_SHARED_FLAG

/* Internal objects that rb_imemo_free frees something of, or that a table of the VM knows; those of a later version may be, too. */
#define IMEMO_IS_FREED                                                                             \
    (0xffffu & ~(1u << imemo_cref | 1u << imemo_svar | 1u << imemo_throw_data | 1u << imemo_ifunc | \
                 1u << imemo_memo | 1u << imemo_parser_strterm | 1u << imemo_callcache | 1u << imemo_constcache))

#endif
