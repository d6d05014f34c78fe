//! The list of peers, and the way to get each. glibc is not in it: `heapwright bench` always races
//! it, as the program without a preload.

use std::path::Path;

use crate::peer::Peer;
use crate::{built, debian};

pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether the peer races only if the command line names it.
    pub(crate) by_name_only: bool,
    get: fn(&Path, &'static str) -> Result<Peer, String>,
}

impl Entry {
    pub(crate) fn get(&self, work: &Path) -> Result<Peer, String> {
        (self.get)(work, self.name)
    }
}

/// The values of `by_name_only`: in the race, or only by its name.
const RACED: bool = false;
const NAMED: bool = true;

macro_rules! entries {
    ($($name:literal, $about:literal, $by_name_only:expr, $get:expr;)*) => {
        &[$(Entry { name: $name, about: $about, by_name_only: $by_name_only, get: $get }),*]
    };
}

pub(crate) const ALL: &[Entry] = entries! {
    "mimalloc", "mimalloc v3, its defaults", RACED, |work, name| {
        built::mimalloc(work, name, "v3", None)
    };
    "mimalloc-no-thp", "the same library, set not to ask for huge pages", RACED, |work, name| {
        let peer = built::mimalloc(work, "mimalloc", "v3", None)?;
        Ok(peer.variant(name, "MIMALLOC_ALLOW_THP", "0"))
    };
    "mimalloc2", "mimalloc v2, its defaults", RACED, |work, name| {
        built::mimalloc(work, name, "v2", None)
    };
    "snmalloc", "snmalloc without its checks", RACED, |work, name| {
        built::snmalloc(work, name, false)
    };
    "jemalloc", "jemalloc, Debian's", RACED, |_, name| {
        debian::shared(name, "libjemalloc.so.2", "libjemalloc2")
    };
    "rpmalloc", "rpmalloc", RACED, |work, _| built::rpmalloc(work);
    "gperftools", "tcmalloc of gperftools, Debian's", RACED, |_, name| {
        debian::shared(name, "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")
    };
    // The proxy defines malloc's names and loads the allocator.
    "tbb", "oneTBB's scalable malloc, Debian's", RACED, |_, name| {
        debian::shared(name, "libtbbmalloc_proxy.so.2", "libtbbmalloc2")
    };
    "scudo", "LLVM's hardened malloc, Debian's", RACED, |_, name| {
        debian::of_clang(name, "scudo_standalone")
    };
    // By default this scudo ends a program that calls realloc on a block of memalign, which C
    // allows. So that check is off.
    "scudo-classic", "scudo before it stood alone, Debian's; only by its name", NAMED, |_, name| {
        let peer = debian::of_clang(name, "scudo")?;
        Ok(peer.variant(name, "SCUDO_OPTIONS", "DeallocationTypeMismatch=0"))
    };
    "hardened_malloc",
    "GrapheneOS's, its default; HARDENED_MALLOC names its sources; only by its name", NAMED,
    |work, name| built::hardened_malloc(work, name, "default");
    "hardened_malloc-light", "the same in its light configuration; only by its name", NAMED,
    |work, name| built::hardened_malloc(work, name, "light");
    "mimalloc-secure", "mimalloc v3 with its mitigations; only by its name", NAMED,
    |work, name| built::mimalloc(work, name, "v3", Some(4));
    "snmalloc-checks", "snmalloc with its checks; only by its name", NAMED, |work, name| {
        built::snmalloc(work, name, true)
    };
    // MALLOC_CHECK_ puts one check byte behind each block.
    "glibc-check", "glibc's malloc with MALLOC_CHECK_=3; only by its name", NAMED, |_, name| {
        let peer = debian::shared(name, "libc_malloc_debug.so.0", "libc6")?;
        Ok(peer.variant(name, "MALLOC_CHECK_", "3"))
    };
};

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
