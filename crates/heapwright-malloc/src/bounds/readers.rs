//! The second table: functions of the C library that read, in `libheapwright-check.so`, for
//! `mode=debug`. Some also write memory that the library's own `__*_chk` forms cannot check.
//! `table` explains the form of a line.
//!
//! | argument | bytes that are verified |
//! |---|---|
//! | memory with a given length (`memcmp`, `fwrite`) | all: C requires an array of that length |
//! | memory that is searched (`memchr`, `rawmemchr`, `strchr`) | up to the match |
//! | a string | to its end; a number: its digits; two compared strings: to their difference |
//! | a format | the format, and the string of each `%s` (see `format`) |
//!
//! The checks ignore a null pointer: the C library faults on it, or gives it a meaning (`strtok`).

use super::table::{ConstText, ConstWide, From, List, Text, To, Wide};
use super::{Check, Function, Glance, Room, Stage, product, reading, wide};
use core::cell::Cell;
use core::mem::transmute;
use core::sync::atomic::Ordering;
use heapwright_entry_reads::SLOTS;
use libc::{
    FILE, c_char, c_double, c_float, c_int, c_long, c_longlong, c_ulong, c_ulonglong, c_void,
    ssize_t, wchar_t,
};

type End = *mut *mut c_char;
type Compare = *mut c_void;

const ALL: usize = usize::MAX;

functions! { READERS:
    // Bytes.
    memcmp(one: From, other: From, n: usize) -> c_int { reads(one, n), reads(other, n) }
    bcmp(one: From, other: From, n: usize) -> c_int { reads(one, n), reads(other, n) }
    memchr(from: From, byte: c_int, n: usize) -> To { reads_until(from, byte, n) }
    memrchr(from: From, byte: c_int, n: usize) -> To { reads(from, n) }
    rawmemchr(from: From, byte: c_int) -> To { reads_until(from, byte, ALL) }
    memmem(from: From, n: usize, what: From, bytes: usize) -> To { reads(from, n), reads(what, bytes) }
    wmemcmp(one: ConstWide, other: ConstWide, n: usize) -> c_int { reads(one, wide(n)), reads(other, wide(n)) }
    wmemchr(from: ConstWide, character: wchar_t, n: usize) -> Wide { finds(from, character, n) }

    // Strings.
    strlen(text: ConstText) -> usize { instead reading::length_of }
    strnlen(text: ConstText, n: usize) -> usize { reads_text(text, n) }
    strcmp(one: ConstText, other: ConstText) -> c_int { compares(one, other, ALL) }
    strncmp(one: ConstText, other: ConstText, n: usize) -> c_int { compares(one, other, n) }
    strcasecmp(one: ConstText, other: ConstText) -> c_int { compares_letters(one, other, ALL) }
    strncasecmp(one: ConstText, other: ConstText, n: usize) -> c_int { compares_letters(one, other, n) }
    strcoll(one: ConstText, other: ConstText) -> c_int { reads_text(one, ALL), reads_text(other, ALL) }
    strxfrm(to: Text, from: ConstText, n: usize) -> usize { writes(to, n), reads_text(from, ALL) }
    strchr(text: ConstText, character: c_int) -> Text { finds_in_text(text, character) }
    strrchr(text: ConstText, character: c_int) -> Text { reads_text(text, ALL) }
    strchrnul(text: ConstText, character: c_int) -> Text { finds_in_text(text, character) }
    index(text: ConstText, character: c_int) -> Text { finds_in_text(text, character) }
    rindex(text: ConstText, character: c_int) -> Text { reads_text(text, ALL) }
    strstr(text: ConstText, what: ConstText) -> Text { finds_text(text, what) }
    strcasestr(text: ConstText, what: ConstText) -> Text { finds_letters(text, what) }
    strspn(text: ConstText, set: ConstText) -> usize { stops(text, set, false) }
    strcspn(text: ConstText, set: ConstText) -> usize { stops(text, set, true) }
    strpbrk(text: ConstText, set: ConstText) -> Text { stops(text, set, true) }
    strtok(text: Text, set: ConstText) -> Text { reads_text(text, ALL), reads_text(set, ALL) }
    strtok_r(text: Text, set: ConstText, rest: End) -> Text { splits(text, rest, set, true) }
    __strtok_r(text: Text, set: ConstText, rest: End) -> Text { splits(text, rest, set, true) }
    strsep(text: End, set: ConstText) -> Text { splits(core::ptr::null_mut(), text, set, false) }
    strdup(text: ConstText) -> Text { reads_text(text, ALL) }
    __strdup(text: ConstText) -> Text { reads_text(text, ALL) }
    strndup(text: ConstText, n: usize) -> Text { reads_text(text, n) }
    __strndup(text: ConstText, n: usize) -> Text { reads_text(text, n) }

    // Numbers in text.
    atoi(text: ConstText) -> c_int { reads_integer(text, 10) }
    atol(text: ConstText) -> c_long { reads_integer(text, 10) }
    atoll(text: ConstText) -> c_longlong { reads_integer(text, 10) }
    atof(text: ConstText) -> c_double { reads_float(text) }
    strtol(text: ConstText, end: End, base: c_int) -> c_long { reads_integer(text, base) }
    strtoul(text: ConstText, end: End, base: c_int) -> c_ulong { reads_integer(text, base) }
    strtoll(text: ConstText, end: End, base: c_int) -> c_longlong { reads_integer(text, base) }
    strtoull(text: ConstText, end: End, base: c_int) -> c_ulonglong { reads_integer(text, base) }
    strtod(text: ConstText, end: End) -> c_double { reads_float(text) }
    strtof(text: ConstText, end: End) -> c_float { reads_float(text) }
    __isoc23_strtol(text: ConstText, end: End, base: c_int) -> c_long { reads_integer(text, base) }
    __isoc23_strtoul(text: ConstText, end: End, base: c_int) -> c_ulong { reads_integer(text, base) }
    __isoc23_strtoll(text: ConstText, end: End, base: c_int) -> c_longlong { reads_integer(text, base) }
    __isoc23_strtoull(text: ConstText, end: End, base: c_int) -> c_ulonglong { reads_integer(text, base) }

    // Wide characters.
    wcslen(text: ConstWide) -> usize { reads_text(text, ALL) }
    wcsnlen(text: ConstWide, n: usize) -> usize { reads_text(text, n) }
    wcscmp(one: ConstWide, other: ConstWide) -> c_int { compares(one, other, ALL) }
    wcsncmp(one: ConstWide, other: ConstWide, n: usize) -> c_int { compares(one, other, n) }
    wcschr(text: ConstWide, character: wchar_t) -> Wide { finds(text, character, ALL) }
    wcsrchr(text: ConstWide, character: wchar_t) -> Wide { reads_text(text, ALL) }
    wcsstr(text: ConstWide, what: ConstWide) -> Wide { reads_text(text, ALL), reads_text(what, ALL) }
    wcsdup(text: ConstWide) -> Wide { reads_text(text, ALL) }

    // Text that is made and goes elsewhere.
    vprintf(format: ConstText, list: List) -> c_int { formats(format, list) }
    printf as vprintf(format: ConstText, list: List) -> c_int { formats(format, list) }
    vfprintf(file: *mut FILE, format: ConstText, list: List) -> c_int { formats(format, list) }
    fprintf as vfprintf(file: *mut FILE, format: ConstText, list: List) -> c_int { formats(format, list) }
    vdprintf(file: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    dprintf as vdprintf(file: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    vasprintf(to: End, format: ConstText, list: List) -> c_int { formats(format, list) }
    asprintf as vasprintf(to: End, format: ConstText, list: List) -> c_int { formats(format, list) }
    vsyslog(priority: c_int, format: ConstText, list: List) -> () { formats(format, list) }
    syslog as vsyslog(priority: c_int, format: ConstText, list: List) -> () { formats(format, list) }
    __vprintf_chk(flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __printf_chk as __vprintf_chk(flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __vfprintf_chk(file: *mut FILE, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __fprintf_chk as __vfprintf_chk(file: *mut FILE, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __vdprintf_chk(file: c_int, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __dprintf_chk as __vdprintf_chk(file: c_int, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __vasprintf_chk(to: End, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __asprintf_chk as __vasprintf_chk(to: End, flag: c_int, format: ConstText, list: List) -> c_int { formats(format, list) }
    __vsyslog_chk(priority: c_int, flag: c_int, format: ConstText, list: List) -> () { formats(format, list) }
    __syslog_chk as __vsyslog_chk(priority: c_int, flag: c_int, format: ConstText, list: List) -> () { formats(format, list) }
    puts(text: ConstText) -> c_int { reads_text(text, ALL) }
    fputs(text: ConstText, file: *mut FILE) -> c_int { reads_text(text, ALL) }
    fputs_unlocked(text: ConstText, file: *mut FILE) -> c_int { reads_text(text, ALL) }
    fputws(text: ConstWide, file: *mut FILE) -> c_int { reads_text(text, ALL) }

    // Text that is taken apart.
    vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }
    sscanf as vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }
    __isoc99_vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }
    __isoc99_sscanf as __isoc99_vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }
    __isoc23_vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }
    __isoc23_sscanf as __isoc23_vsscanf(text: ConstText, format: ConstText, list: List) -> c_int { reads_text(text, ALL), reads_text(format, ALL) }

    // Streams.
    fwrite(from: From, size: usize, count: usize, file: *mut FILE) -> usize { reads(from, product(size, count)) }
    fwrite_unlocked(from: From, size: usize, count: usize, file: *mut FILE) -> usize { reads(from, product(size, count)) }
    getline(to: End, n: *mut usize, file: *mut FILE) -> ssize_t { writes_line(to, n) }
    getdelim(to: End, n: *mut usize, end: c_int, file: *mut FILE) -> ssize_t { writes_line(to, n) }
    __getdelim(to: End, n: *mut usize, end: c_int, file: *mut FILE) -> ssize_t { writes_line(to, n) }

    // Arrays.
    qsort(array: To, count: usize, size: usize, compare: Compare) -> () { writes(array, product(count, size)) }
    qsort_r(array: To, count: usize, size: usize, compare: Compare, with: To) -> () { writes(array, product(count, size)) }
    bsearch(key: From, array: From, count: usize, size: usize, compare: Compare) -> To { reads(array, product(count, size)) }
}
