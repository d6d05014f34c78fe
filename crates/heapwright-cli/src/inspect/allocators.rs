//! Recognises allocators by names that only they use.
//!
//! The names are whole: too many other words begin with `je_`. A program that *defines* one of the
//! symbols contains the allocator. A program that *imports* one calls a shared copy directly, not
//! through malloc. A library's file name shows a copy that replaces malloc at start; a preload
//! precedes it.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Allocator {
    pub(super) name: &'static str,
    /// Functions that only this allocator has.
    symbols: &'static [&'static str],
    /// Prefixes of its shared libraries' names.
    libraries: &'static [&'static str],
    /// A text that only this allocator's code contains, for stripped programs.
    pub(super) text: Option<&'static str>,
}

const ALLOCATORS: [Allocator; 9] = [
    Allocator {
        name: "jemalloc",
        symbols: &[
            "je_malloc",
            "je_mallocx",
            "mallocx",
            "rallocx",
            "sdallocx",
            "_rjem_malloc",
            "_rjem_mallocx",
        ],
        libraries: &["libjemalloc"],
        text: Some("<jemalloc>: "),
    },
    Allocator {
        name: "mimalloc",
        symbols: &["mi_malloc", "mi_malloc_aligned", "mi_heap_malloc", "mi_theap_malloc"],
        libraries: &["libmimalloc"],
        text: Some("mimalloc: error: "),
    },
    Allocator {
        name: "tcmalloc",
        symbols: &["tc_malloc", "tc_new", "TCMallocInternalMalloc"],
        libraries: &["libtcmalloc"],
        text: Some("tcmalloc: large alloc "),
    },
    Allocator {
        name: "snmalloc",
        symbols: &["sn_malloc", "sn_rust_alloc"],
        libraries: &["libsnmalloc"],
        text: None,
    },
    Allocator {
        name: "rpmalloc",
        symbols: &["rpmalloc", "rpaligned_alloc"],
        libraries: &["librpmalloc"],
        text: None,
    },
    Allocator {
        name: "oneTBB's malloc",
        symbols: &["scalable_malloc"],
        libraries: &["libtbbmalloc"],
        text: None,
    },
    Allocator {
        name: "hardened_malloc",
        symbols: &["h_malloc"],
        libraries: &["libhardened_malloc"],
        text: None,
    },
    Allocator { name: "dlmalloc", symbols: &["dlmalloc"], libraries: &["libdlmalloc"], text: None },
    Allocator {
        name: "heapwright itself",
        symbols: &["hw_heap_new"],
        libraries: &["libheapwright"],
        text: None,
    },
];

/// Sanitizers: they replace malloc and must be the first library.
const SANITIZERS: [(&str, &str, &str); 5] = [
    ("AddressSanitizer", "__asan_init", "libasan"),
    ("HWAddressSanitizer", "__hwasan_init", "libhwasan"),
    ("ThreadSanitizer", "__tsan_init", "libtsan"),
    ("MemorySanitizer", "__msan_init", "libmsan"),
    ("LeakSanitizer", "__lsan_init", "liblsan"),
];

/// Returns the allocator that has a function of this name.
pub(super) fn of_symbol(symbol: &str) -> Option<&'static Allocator> {
    ALLOCATORS.iter().find(|allocator| allocator.symbols.contains(&symbol))
}

pub(super) fn of_library(name: &str) -> Option<&'static Allocator> {
    ALLOCATORS.iter().find(|allocator| is_named(name, allocator.libraries))
}

/// Returns the allocators that a text in the program can show.
pub(super) fn with_text() -> impl Iterator<Item = (&'static Allocator, &'static str)> {
    ALLOCATORS.iter().filter_map(|allocator| Some((allocator, allocator.text?)))
}

pub(super) fn sanitizer(name: &str) -> Option<&'static str> {
    SANITIZERS
        .iter()
        .find(|(_, symbol, library)| name == *symbol || is_named(name, &[library]))
        .map(|(sanitizer, ..)| *sanitizer)
}

/// Library names continue like `libx.so`, `libx-2.so`, `libx_minimal.so`.
fn is_named(file: &str, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| file.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '_', '-'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_allocators() {
        let name = |symbol| of_symbol(symbol).map(|allocator| allocator.name);
        assert_eq!(name("mi_malloc"), Some("mimalloc"));
        assert_eq!(name("_rjem_malloc"), Some("jemalloc"));
        assert_eq!(name("je_suis_charlie"), None);
        assert_eq!(name("malloc"), None);
    }

    #[test]
    fn libraries_are_distinguished_from_namesakes() {
        let name = |file| of_library(file).map(|allocator| allocator.name);
        assert_eq!(name("libjemalloc.so.2"), Some("jemalloc"));
        assert_eq!(name("libtcmalloc_minimal.so.4"), Some("tcmalloc"));
        assert_eq!(name("libtcmallocator.so"), None);
        assert_eq!(name("libc.so.6"), None);
        assert_eq!(sanitizer("libasan.so.8"), Some("AddressSanitizer"));
        assert_eq!(sanitizer("__tsan_init"), Some("ThreadSanitizer"));
        assert_eq!(sanitizer("libasanitation.so"), None);
    }
}
