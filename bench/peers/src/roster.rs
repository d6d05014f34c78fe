//! Which peers there are. glibc is not among them: it is a program without a
//! preload, and `heapwright bench` races it always.

use std::path::Path;

use crate::peer::Peer;
use crate::{debian, mimalloc, rpmalloc, rusty_alloc, snmalloc};

/// A peer and how to get it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) get: fn(&Path) -> Result<Peer, String>,
}

/// All of them, in the order they are printed.
pub(crate) const ALL: &[Entry] = &[
    Entry { name: "mimalloc", about: "mimalloc v3, its defaults", get: mimalloc::v3 },
    Entry {
        name: "mimalloc-no-thp",
        about: "the same library, told not to ask for huge pages",
        get: mimalloc::v3_no_thp,
    },
    Entry { name: "mimalloc2", about: "mimalloc v2, its defaults", get: mimalloc::v2 },
    Entry { name: "snmalloc", about: "snmalloc without its checks", get: snmalloc::get },
    Entry { name: "jemalloc", about: "jemalloc, Debian's", get: debian::jemalloc },
    Entry { name: "rpmalloc", about: "rpmalloc", get: rpmalloc::get },
    Entry { name: "rusty_alloc", about: "mimalloc v2 remade in Rust", get: rusty_alloc::get },
    Entry {
        name: "gperftools",
        about: "tcmalloc of gperftools, Debian's",
        get: debian::gperftools,
    },
    Entry { name: "tbb", about: "oneTBB's scalable malloc, Debian's", get: debian::tbb },
    Entry { name: "scudo", about: "LLVM's hardened malloc, Debian's", get: debian::scudo },
];

/// The entries of these names, or all.
pub(crate) fn chosen(only: &[String]) -> Result<Vec<&'static Entry>, String> {
    if let Some(unknown) = only.iter().find(|&name| !ALL.iter().any(|e| e.name == name)) {
        return Err(format!("--only {unknown}: no such peer; --list prints them"));
    }
    Ok(ALL.iter().filter(|e| only.is_empty() || only.iter().any(|name| name == e.name)).collect())
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
        assert_eq!(names(&[]).unwrap().len(), ALL.len());
        assert!(names(&["mimaloc"]).unwrap_err().contains("mimaloc"));
    }
}
