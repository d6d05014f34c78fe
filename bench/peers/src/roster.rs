//! Which peers there are. glibc is not among them: it is a program without a
//! preload, and `heapwright bench` races it always.

use std::path::Path;

use crate::peer::Peer;
use crate::{debian, hardened_malloc, mimalloc, rpmalloc, rusty_alloc, snmalloc};

/// A peer and how to get it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) get: fn(&Path) -> Result<Peer, String>,
    /// Whether it is had only where it is asked for by its name: not in the race.
    pub(crate) by_name_only: bool,
}

impl Entry {
    const fn new(
        name: &'static str,
        about: &'static str,
        get: fn(&Path) -> Result<Peer, String>,
    ) -> Self {
        Self { name, about, get, by_name_only: false }
    }

    const fn by_name_only(self) -> Self {
        Self { by_name_only: true, ..self }
    }
}

/// All of them, in the order they are printed.
pub(crate) const ALL: &[Entry] = &[
    Entry::new("mimalloc", "mimalloc v3, its defaults", mimalloc::v3),
    Entry::new(
        "mimalloc-no-thp",
        "the same library, set not to ask for huge pages",
        mimalloc::v3_no_thp,
    ),
    Entry::new("mimalloc2", "mimalloc v2, its defaults", mimalloc::v2),
    Entry::new("snmalloc", "snmalloc without its checks", snmalloc::get),
    Entry::new("jemalloc", "jemalloc, Debian's", debian::jemalloc),
    Entry::new("rpmalloc", "rpmalloc", rpmalloc::get),
    Entry::new("rusty_alloc", "mimalloc v2 remade in Rust", rusty_alloc::get),
    Entry::new("gperftools", "tcmalloc of gperftools, Debian's", debian::gperftools),
    Entry::new("tbb", "oneTBB's scalable malloc, Debian's", debian::tbb),
    Entry::new("scudo", "LLVM's hardened malloc, Debian's", debian::scudo),
    Entry::new(
        "scudo-classic",
        "scudo before it stood alone, Debian's; only by its name",
        debian::scudo_classic,
    )
    .by_name_only(),
    Entry::new(
        "hardened_malloc",
        "GrapheneOS's, its default; HARDENED_MALLOC names its sources; only by its name",
        hardened_malloc::full,
    )
    .by_name_only(),
    Entry::new(
        "hardened_malloc-light",
        "the same in its light configuration; only by its name",
        hardened_malloc::light,
    )
    .by_name_only(),
    Entry::new(
        "mimalloc-secure",
        "mimalloc v3 with its mitigations; only by its name",
        mimalloc::v3_secure,
    )
    .by_name_only(),
    Entry::new("snmalloc-checks", "snmalloc with its checks; only by its name", snmalloc::checked)
        .by_name_only(),
    Entry::new(
        "glibc-check",
        "glibc's malloc with MALLOC_CHECK_=3; only by its name",
        debian::glibc_check,
    )
    .by_name_only(),
];

/// The entries of these names, or all that are in the race.
pub(crate) fn chosen(only: &[String]) -> Result<Vec<&'static Entry>, String> {
    if let Some(unknown) = only.iter().find(|&name| !ALL.iter().any(|e| e.name == name)) {
        return Err(format!("--only {unknown}: no such peer; --list prints them"));
    }
    let wanted = |e: &&Entry| match only {
        [] => !e.by_name_only,
        _ => only.iter().any(|name| name == e.name),
    };
    Ok(ALL.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_picks_and_refuses() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&n| n.to_owned()).collect();
            chosen(&only).map(|all| all.iter().map(|e| e.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["tbb", "mimalloc"]).unwrap(), ["mimalloc", "tbb"]);
        assert_eq!(names(&[]).unwrap().len(), ALL.iter().filter(|e| !e.by_name_only).count());
        assert_eq!(names(&[]).unwrap().last(), Some(&"scudo"));
        assert_eq!(names(&["scudo-classic"]).unwrap(), ["scudo-classic"]);
        assert!(names(&["mimaloc"]).unwrap_err().contains("mimaloc"));
    }
}
