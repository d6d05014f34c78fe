//! Peers from Debian's packages: jemalloc, gperftools, oneTBB, scudo, and glibc's malloc with its
//! checks. A library of that name from elsewhere serves as well, but its version is unknown.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::output;
use crate::peer::Peer;

/// Finds a library in clang's runtime folder: the linker does not know its name.
pub(crate) fn of_clang(name: &'static str, runtime: &str) -> Result<Peer, String> {
    let file = format!("libclang_rt.{runtime}-{}.so", std::env::consts::ARCH);
    let mut found = Vec::new();
    for version in folders(Path::new("/usr/lib"), "llvm-") {
        for clang in folders(&version.join("lib/clang"), "") {
            found.push(clang.join("lib/linux").join(&file));
        }
    }
    found.retain(|path| path.is_file());
    found.sort_by_key(|path| version_in(path));
    let library = found.pop().ok_or_else(|| {
        format!("no {file} under /usr/lib/llvm-*; Debian's package libclang-rt-14-dev has it")
    })?;
    Ok(described(name, library))
}

pub(crate) fn shared(name: &'static str, file: &str, package: &str) -> Result<Peer, String> {
    let cache = output(Command::new("ldconfig").arg("-p"))
        .or_else(|_| output(Command::new("/sbin/ldconfig").arg("-p")))?;
    let library = in_cache(&cache, file)
        .ok_or_else(|| format!("no {file} here; Debian's package {package} has it"))?;
    Ok(described(name, library))
}

/// `ldconfig -p` lists the machine's own architecture first.
fn in_cache(cache: &str, file: &str) -> Option<PathBuf> {
    cache.lines().find_map(|line| {
        let (name, path) = line.trim().split_once(" => ")?;
        (name.split_whitespace().next()? == file).then(|| PathBuf::from(path))
    })
}

fn folders(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .collect()
}

fn version_in(path: &Path) -> Vec<u64> {
    let text = path.to_string_lossy();
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

fn described(name: &'static str, library: PathBuf) -> Peer {
    let (version, origin) = package_of(&library).unwrap_or_else(|| {
        let file = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ("unknown".to_owned(), file)
    });
    Peer { name, environment: Vec::new(), library, version, origin }
}

fn package_of(library: &Path) -> Option<(String, String)> {
    // dpkg knows a file only by its unpacked path, not through links such as /lib -> /usr/lib.
    let library = library.canonicalize().ok()?;
    let owner = output(Command::new("dpkg-query").arg("-S").arg(&library)).ok()?;
    let package = owner.split(": ").next()?.trim().to_owned();
    let version =
        output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", &package])).ok()?;
    let name = package.split(':').next()?;
    Some((version.trim().to_owned(), format!("Debian's {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linkers_cache_is_searched_by_whole_name() {
        let cache = "12 libs found\n\
            \tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2\n\
            \tlibjemalloc.so (libc6) => /opt/libjemalloc.so\n";
        let found = in_cache(cache, "libjemalloc.so.2");
        assert_eq!(found, Some("/lib/x86_64-linux-gnu/libjemalloc.so.2".into()));
        assert_eq!(in_cache(cache, "libjemalloc.so.1"), None);
    }

    #[test]
    fn versions_compare_as_numbers() {
        let nine = version_in(Path::new("/usr/lib/llvm-9/lib/clang/9.0.1/lib"));
        let fourteen = version_in(Path::new("/usr/lib/llvm-14/lib/clang/14.0.6/lib"));
        assert!(nine < fourteen);
    }
}
