//! Functions that allocate for other code, between the allocator and the code that owns the block:
//! those of the standard libraries of Rust and C++, of interpreters' allocators, and of a
//! heapwright that is linked in. They are the same for every block, so they distinguish neither
//! owners nor leaks: reports fold them, and suppressions begin behind them.

use super::Function;

/// Prefixes of such functions' names, without a return type or `<` in front.
const STARTS: [&str; 33] = [
    // ours, and Rust's
    "heapwright::",
    "heapwright_",
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "__rust_",
    "__rustc",
    "__rg_",
    "__rdl_",
    // C++'s
    "__gnu_cxx::",
    "operator new",
    "operator delete",
    "_Zn",
    "_Zd",
    // interpreters', and GLib's
    "_PyMem_",
    "PyMem_",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
    "_PyObject_Free",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "PyObject_Free",
    "PyType_GenericAlloc",
    "_PyType_AllocNoTrack",
    "ruby_x",
    "rb_gc_impl_",
    "objspace_x",
    "Perl_safesys",
    "g_malloc",
    "g_realloc",
];

/// Functions of the C library that allocate for others.
const NAMES: [&str; 13] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "free_sized",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

pub(crate) fn is_plumbing(function: &Function) -> bool {
    let is = |name: &Option<String>| name.as_deref().is_some_and(is_plumbing_name);
    is(&function.name)
}

pub(crate) fn is_plumbing_name(name: &str) -> bool {
    if NAMES.contains(&name) || name.contains(" as core::alloc::global::GlobalAlloc>::") {
        return true;
    }
    let begins = |name: &str| STARTS.iter().any(|start| name.starts_with(start));
    begins(name) || begins(without_type(name).trim_start_matches(['<', '&']))
}

/// Removes the return type in front of a function's name. Instances of templates have one.
fn without_type(name: &str) -> &str {
    let (mut depth, mut begin) = (0_u32, 0);
    for (at, letter) in name.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &name[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_memory_for_others_is_known() {
        for name in [
            "malloc",
            "operator new(unsigned long)",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "<shop::Counted as core::alloc::global::GlobalAlloc>::alloc",
            "<heapwright::adapters::Heapwright as core::alloc::global::GlobalAlloc>::alloc",
            "__rustc[9f1a]::__rust_alloc",
            "void std::vector<shop::Item, std::allocator<shop::Item> >::_M_realloc_insert<int>(int&&)",
            "std::__cxx11::basic_string<char>::_M_create(unsigned long&, unsigned long)",
            "PyMem_Malloc",
        ] {
            assert!(is_plumbing_name(name), "{name}");
        }
        for name in [
            "main",
            "xmalloc",
            "free_list",
            "malloc_hook",
            "shop::fill(std::vector<int>&)",
            "std_fill",
            "<shop::Cart as core::fmt::Display>::fmt",
            "int shop::first<std::vector<int> >(std::vector<int> const&)",
        ] {
            assert!(!is_plumbing_name(name), "{name}");
        }
    }
}
