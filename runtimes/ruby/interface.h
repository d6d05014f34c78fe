/*
** What differs between Ruby's versions, and what the port reads of objects that Ruby's public headers do not name. Checked against 3.4.5.
**
** The flags are those of Ruby's internal headers of the source that this is built against.
*/
#ifndef RUBY_HEAPWRIGHT_INTERFACE_H
#define RUBY_HEAPWRIGHT_INTERFACE_H

#include "internal.h" /* before what it takes back */
#include "internal/compilers.h"
#include "internal/array.h"
#include "internal/class.h"
#include "internal/hash.h"
#include "internal/imemo.h"
#include "internal/string.h"
#include "internal/struct.h"
#include "shape.h"

#define STRING_IS_SHARED STR_SHARED
#define STRING_IS_INTERNED RSTRING_FSTR
#define ARRAY_IS_SHARED RARRAY_SHARED_FLAG
#define HASH_IS_LARGE RHASH_ST_TABLE_FLAG

/* The variables of an object: how many it has by its shape, or that they are in a table. */
#define HAS_TABLE(obj) (RBASIC_SHAPE_ID(obj) == OBJ_TOO_COMPLEX_SHAPE_ID)
#define VARIABLES(obj) (rb_shape_get_shape_by_id(RBASIC_SHAPE_ID(obj))->next_iv_index)

/* Internal objects that rb_imemo_free frees something of, or that a table of the VM knows; those of a later version may be, too. */
#define IMEMO_IS_FREED                                                                             \
    (0xffffu & ~(1u << imemo_cref | 1u << imemo_svar | 1u << imemo_throw_data | 1u << imemo_ifunc | \
                 1u << imemo_memo | 1u << imemo_parser_strterm | 1u << imemo_callcache | 1u << imemo_constcache))

#endif
