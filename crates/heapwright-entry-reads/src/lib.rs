//! The names of the C library's functions that read, which `libheapwright-check.so` exports beside those of
//! heapwright-entry, whose design this crate shares: entries of two instructions, slots that are filled before anyone
//! needs them, heapwright's own calls led past them.
//!
//! **This crate is an implementation detail of heapwright; nothing here is stable.**
//!
//! They are a crate of their own because the hardened library does not look at what is read: there `strlen` stays
//! the C library's, without as much as a jump.
//!
//! What heapwright itself calls of them leads to `own`. Until the C library's are known that is done byte by byte, in a
//! crate whose loops the compiler leaves as they are (`no_builtins`).
//!
//! Invariants: those of heapwright-entry.
#![no_std]
#![no_builtins]

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;

use heapwright_entry::{own, slots};

/// Where heapwright's own calls lead.
#[repr(C)]
pub struct Own {
    /// `memcmp` and `bcmp`: one function, as they are for whoever asks for equality.
    pub memcmp: AtomicPtr<c_void>,
    /// `memchr`.
    pub memchr: AtomicPtr<c_void>,
    /// `strlen`.
    pub strlen: AtomicPtr<c_void>,
    /// `strnlen`.
    pub strnlen: AtomicPtr<c_void>,
    /// `wcsnlen`.
    pub wcsnlen: AtomicPtr<c_void>,
}

// What each of them reads is said in the library's table (bounds/readers.rs), which the compiler compares with this list.
slots! {
    own: Own {
        memcmp: AtomicPtr::new(plain_memcmp as *mut c_void),
        memchr: AtomicPtr::new(plain_memchr as *mut c_void),
        strlen: AtomicPtr::new(plain_strlen as *mut c_void),
        strnlen: AtomicPtr::new(plain_strnlen as *mut c_void),
        wcsnlen: AtomicPtr::new(plain_wcsnlen as *mut c_void),
    };
    plain:
        memcmp bcmp memchr memrchr rawmemchr memmem wmemcmp wmemchr
        strlen strnlen strcmp strncmp strcasecmp strncasecmp strcoll strxfrm
        strchr strrchr strchrnul index rindex strstr strcasestr strspn strcspn strpbrk
        strtok strtok_r __strtok_r strsep strdup __strdup strndup __strndup
        atoi atol atoll atof strtol strtoul strtoll strtoull strtod strtof
        __isoc23_strtol __isoc23_strtoul __isoc23_strtoll __isoc23_strtoull
        wcslen wcsnlen wcscmp wcsncmp wcschr wcsrchr wcsstr wcsdup
        vprintf vfprintf vdprintf vasprintf vsyslog
        __vprintf_chk __vfprintf_chk __vdprintf_chk __vasprintf_chk __vsyslog_chk
        puts fputs fputs_unlocked fputws
        vsscanf __isoc99_vsscanf __isoc23_vsscanf
        write pwrite pwrite64 send sendto writev pwritev sendmsg readv preadv recvmsg
        fwrite fwrite_unlocked getline getdelim __getdelim
        qsort qsort_r bsearch;
    variadic:
        printf 1 fprintf 2 dprintf 2 asprintf 2 syslog 2
        __printf_chk 2 __fprintf_chk 3 __dprintf_chk 3 __asprintf_chk 3 __syslog_chk 3
        sscanf 2 __isoc99_sscanf 2 __isoc23_sscanf 2;
}

own! {
    "__wrap_memcmp" memcmp
    "__wrap_bcmp" memcmp
    "__wrap_memchr" memchr
    "__wrap_strlen" strlen
    "__wrap_strnlen" strnlen
    "__wrap_wcsnlen" wcsnlen
}

/// `memcmp` until the C library's is known; the others are, too.
unsafe extern "C" fn plain_memcmp(one: *const u8, other: *const u8, bytes: usize) -> c_int {
    for at in 0..bytes {
        // SAFETY: it has that many bytes, as the caller promises.
        let one = unsafe { *one.wrapping_add(at) };
        // SAFETY: it has as many.
        let other = unsafe { *other.wrapping_add(at) };
        if one != other {
            return c_int::from(one) - c_int::from(other);
        }
    }
    0
}

unsafe extern "C" fn plain_memchr(from: *const u8, byte: c_int, bytes: usize) -> *const u8 {
    for at in 0..bytes {
        // SAFETY: there is such a byte, or that many, as the caller promises.
        if unsafe { *from.wrapping_add(at) } == byte as u8 {
            return from.wrapping_add(at);
        }
    }
    core::ptr::null()
}

unsafe extern "C" fn plain_strlen(text: *const u8) -> usize {
    // SAFETY: a string, as the caller promises.
    unsafe { plain_strnlen(text, usize::MAX) }
}

unsafe extern "C" fn plain_strnlen(text: *const u8, most: usize) -> usize {
    let mut at = 0;
    // SAFETY: a string, or that many bytes, as the caller promises.
    while at < most && unsafe { *text.wrapping_add(at) } != 0 {
        at += 1;
    }
    at
}

unsafe extern "C" fn plain_wcsnlen(text: *const u32, most: usize) -> usize {
    let mut at = 0;
    // SAFETY: a string, or that many characters, as the caller promises.
    while at < most && unsafe { *text.wrapping_add(at) } != 0 {
        at += 1;
    }
    at
}
