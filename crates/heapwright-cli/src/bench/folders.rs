//! The machine's folders of shared libraries.
//!
//! First come the folders of `/etc/ld.so.conf`, then the usual ones on Linux, and then clang's
//! own, which has scudo. This module reads the folders themselves: the loader's cache may
//! lack an allocator with which no program is linked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns every folder that exists, best first, each once.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    configured(Path::new("/etc/ld.so.conf"), 0, &mut folders);
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    for base in ["/usr/local/lib", "/usr/lib", "/lib"] {
        folders.push(Path::new(base).join(&triple));
        folders.push(PathBuf::from(base));
        folders.push(PathBuf::from(format!("{base}64")));
    }
    folders.extend(of_clang());
    let mut seen = BTreeSet::new();
    folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .filter(|folder| folder.is_dir() && seen.insert(folder.clone()))
        .collect()
}

/// Adds the folders in a configuration file. Follows included files to a fixed depth.
fn configured(file: &Path, depth: usize, folders: &mut Vec<PathBuf>) {
    const DEEPEST: usize = 4;
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(patterns) =
            line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t']))
        {
            if depth < DEEPEST {
                for pattern in patterns.split_whitespace() {
                    for included in matching(&beside(file, pattern)) {
                        configured(&included, depth + 1, folders);
                    }
                }
            }
        } else if line.starts_with('/') {
            folders.push(PathBuf::from(line));
        }
    }
}

/// Returns a file's pattern, relative to the file's folder.
fn beside(file: &Path, pattern: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).join(pattern)
}

/// Returns the files that match a pattern; only its last part may have a star.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy();
    let Some((before, after)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let fits = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.len() >= before.len() + after.len()
            && file.starts_with(before)
            && file.ends_with(after)
    };
    children(folder).into_iter().filter(fits).collect()
}

/// Returns Clang's runtime folders, those of the newest version first, such as
/// `/usr/lib/llvm-19/lib/clang/19/lib/linux`.
fn of_clang() -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = children(Path::new("/usr/lib"))
        .into_iter()
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-"))
        })
        .map(|path| path.join("lib/clang"))
        .collect();
    bases.extend(["/usr/lib/clang", "/usr/lib64/clang", "/usr/local/lib/clang"].map(PathBuf::from));
    let mut found: Vec<PathBuf> = Vec::new();
    for base in bases {
        for version in children(&base) {
            let arch = std::env::consts::ARCH;
            let names =
                ["linux", &format!("{arch}-unknown-linux-gnu"), &format!("{arch}-pc-linux-gnu")]
                    .map(|name| version.join("lib").join(name));
            found.extend(names.into_iter().filter(|path| path.is_dir()));
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(numbers(&path.to_string_lossy())));
    found
}

/// Returns the numbers in a text, to sort versions by.
pub(crate) fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

pub(crate) fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_librarys_folder_is_among_them() {
        let all = all();
        assert!(all.iter().any(|folder| folder.join("libc.so.6").exists()), "{all:?}");
        assert!(all.iter().all(|folder| folder.is_dir()));
    }

    #[test]
    fn configuration_files_include_others() {
        let folder = std::env::temp_dir().join(format!("heapwright-ldconf-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let file = folder.join("main.conf");
        fs::write(&file, "# a remark\ninclude sub*.cf\n/a # more\n").expect("written");
        fs::write(folder.join("sub1.cf"), "/b\ninclude main.conf\n").expect("written");
        fs::write(folder.join("sub.conf"), "/c\n").expect("written");
        let mut found = Vec::new();
        configured(&file, 0, &mut found);
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(found.first(), Some(&PathBuf::from("/b")));
        assert!(found.contains(&PathBuf::from("/a")) && !found.contains(&PathBuf::from("/c")));
    }

    #[test]
    fn versions_sort_as_numbers() {
        assert!(numbers("libx.so.10.2") > numbers("libx.so.9"));
        assert!(numbers("none").is_empty());
    }
}
