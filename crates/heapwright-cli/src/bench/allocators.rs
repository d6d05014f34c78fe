//! The allocators that race: glibc, heapwright, allocators found on the machine, and allocators
//! that the user names.
//!
//! `--with NAME=[VAR=VALUE ...]PATH` adds an allocator, or replaces the allocator of that name. The
//! assignments set the program's environment, as before a command in a shell.
//! `--with heapwright:OPTIONS` adds heapwright with these options, under that name.
//! `--with NAME,...` chooses some that are found on the machine.

use super::folders::{self, children, numbers};
use super::results;
use crate::preload::{self, Options};
use crate::wrong::wrong;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The name of the C library's own malloc: no preload.
pub(crate) const GLIBC: &str = "glibc";

pub(crate) const HEAPWRIGHT: &str = "heapwright";

/// The beginning of an option set: `heapwright:purge=never`.
pub(crate) const OPTION_SET: &str = "heapwright:";

/// The longest name a column has room for.
const LONGEST_NAME: usize = 24;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocator {
    pub(crate) name: String,
    pub(crate) library: Option<PathBuf>,
    pub(crate) environment: BTreeMap<String, String>,
}

struct Known {
    name: &'static str,
    /// Names up to `.so`, best first.
    libraries: &'static [&'static str],
}

const KNOWN: [Known; 12] = [
    Known { name: "jemalloc", libraries: &["libjemalloc"] },
    Known { name: "mimalloc", libraries: &["libmimalloc"] },
    Known { name: "mimalloc-secure", libraries: &["libmimalloc-secure"] },
    Known { name: "snmalloc", libraries: &["libsnmallocshim", "libsnmalloc"] },
    Known { name: "rpmalloc", libraries: &["librpmallocwrap", "librpmalloc"] },
    Known { name: "tcmalloc", libraries: &["libtcmalloc_minimal", "libtcmalloc"] },
    Known { name: "tbb", libraries: &["libtbbmalloc_proxy"] },
    Known { name: "scudo", libraries: SCUDO },
    Known { name: "hoard", libraries: &["libhoard"] },
    Known { name: "mesh", libraries: &["libmesh"] },
    Known { name: "hardened_malloc", libraries: &["libhardened_malloc"] },
    Known { name: "hardened-light", libraries: &["libhardened_malloc-light"] },
];

#[cfg(target_arch = "aarch64")]
const SCUDO: &[&str] =
    &["libclang_rt.scudo_standalone-aarch64", "libclang_rt.scudo_standalone", "libscudo"];
#[cfg(not(target_arch = "aarch64"))]
const SCUDO: &[&str] =
    &["libclang_rt.scudo_standalone-x86_64", "libclang_rt.scudo_standalone", "libscudo"];

/// By default mimalloc uses huge pages, which changes its use of memory much.
const WITHOUT_HUGE_PAGES: (&str, &str, &str) = ("mimalloc-no-thp", "MIMALLOC_ALLOW_THP", "0");

impl Allocator {
    fn new(name: &str, library: Option<PathBuf>) -> Self {
        Self { name: name.to_owned(), library, environment: BTreeMap::new() }
    }

    /// Returns whether both stand for one library with one environment.
    fn is_same(&self, other: &Self) -> bool {
        let file = |one: &Self| one.library.as_ref().and_then(|path| path.canonicalize().ok());
        file(self).is_some() && file(self) == file(other) && self.environment == other.environment
    }

    /// The given options come after the allocator's own.
    pub(crate) fn with_options(&self, name: String, options: &str) -> Self {
        let mut one = Self { name, ..self.clone() };
        let value = one.environment.entry("HEAPWRIGHT".to_owned()).or_default();
        let comma = if value.is_empty() { "" } else { "," };
        value.push_str(&format!("{comma}{options}"));
        one
    }

    pub(crate) fn described(&self, version: Option<String>) -> results::Allocator {
        results::Allocator {
            name: self.name.clone(),
            library: self.library_name(),
            version,
            environment: self.environment.clone(),
        }
    }

    /// Results name a library without its folder.
    fn library_name(&self) -> Option<String> {
        Some(self.library.as_ref()?.file_name()?.to_string_lossy().into_owned())
    }
}

/// `heapwright` is our library's path.
pub(crate) fn all(
    heapwright: PathBuf,
    with: &[OsString],
    only: &[String],
    baseline: &str,
) -> anyhow::Result<Vec<Allocator>> {
    let mut all = vec![Allocator::new(GLIBC, None), Allocator::new(HEAPWRIGHT, Some(heapwright))];
    // The user's own options apply to heapwright in the race, too.
    if let Some(options) = std::env::var_os("HEAPWRIGHT").filter(|value| !value.is_empty()) {
        let options = options.to_string_lossy().into_owned();
        all[1].environment.insert("HEAPWRIGHT".to_owned(), options);
    }
    all.extend(found(&folders::all()));
    let mut named: Vec<Allocator> = Vec::new();
    let with = With::read(with);
    for text in &with.added {
        let one = match text.strip_prefix(OPTION_SET) {
            Some(options) => option_set(&all, text, options)?,
            None => parse(text)?,
        };
        if named.iter().any(|other| other.name == one.name) {
            return Err(wrong(format!("--with names {} twice", one.name)));
        }
        match all.iter_mut().find(|other| other.name == one.name) {
            Some(other) => *other = one.clone(),
            None => all.push(one.clone()),
        }
        named.push(one);
    }
    // A found library must not race a second time under another name.
    let again = |one: &Allocator| {
        one.name != HEAPWRIGHT && named.iter().any(|other| *one != *other && one.is_same(other))
    };
    all.retain(|one| named.contains(one) || !again(one));
    let only: Vec<String> = only.iter().flat_map(|word| names(word)).collect();
    let known: Vec<String> = all.iter().map(|allocator| allocator.name.clone()).collect();
    for (option, name) in with
        .names
        .iter()
        .map(|name| ("--with", &**name))
        .chain(only.iter().map(|name| ("--only", &**name)))
        .chain([("--baseline", baseline)])
    {
        if !known.iter().any(|known| known == name) {
            return Err(wrong(format!(
                "{option} {name}: no such allocator here; there are {}",
                known.join(", ")
            )));
        }
    }
    if !only.is_empty() {
        all.retain(|one| one.name == baseline || only.contains(&one.name));
    }
    Ok(all)
}

/// Returns the allocators with these `names`, in that order, each once.
pub(crate) fn chosen(
    heapwright: PathBuf,
    with: &[OsString],
    names: &[String],
) -> anyhow::Result<Vec<Allocator>> {
    let all = all(heapwright, with, &[], GLIBC)?;
    let mut chosen: Vec<Allocator> = Vec::new();
    for name in names {
        let Some(one) = all.iter().find(|one| one.name == *name) else {
            let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            return Err(wrong(format!(
                "{name}: no such allocator here; there are {} (or say NAME=PATH)",
                known.join(", ")
            )));
        };
        if !chosen.contains(one) {
            chosen.push(one.clone());
        }
    }
    Ok(chosen)
}

/// All `--with` options together.
pub(crate) struct With {
    /// The names of all allocators in the options.
    pub(crate) names: Vec<String>,
    /// The words `NAME=[VAR=VALUE ...]PATH` and `heapwright:OPTIONS`.
    added: Vec<String>,
}

impl With {
    pub(crate) fn read(words: &[OsString]) -> Self {
        let mut with = Self { names: Vec::new(), added: Vec::new() };
        for word in words {
            let text = word.to_string_lossy();
            if text.starts_with(OPTION_SET) {
                with.names.push(text.clone().into_owned());
                with.added.push(text.into_owned());
            } else if let Some((name, _)) = text.split_once('=') {
                with.names.push(name.trim().to_owned());
                with.added.push(text.into_owned());
            } else {
                with.names.extend(names(&text).filter(|name| !name.is_empty()));
            }
        }
        with
    }
}

/// Splits a word of `--only` or `--with`: names with commas, or one option set.
pub(crate) fn names(word: &str) -> impl Iterator<Item = String> {
    let whole = word.starts_with(OPTION_SET);
    word.split(move |letter| letter == ',' && !whole).map(str::to_owned)
}

/// Makes heapwright with more options. The library refuses bad ones.
fn option_set(all: &[Allocator], name: &str, given: &str) -> anyhow::Result<Allocator> {
    let ours = all.iter().find(|one| one.name == HEAPWRIGHT).context("heapwright races")?;
    let mut options = Options::inherited(ours.environment.get("HEAPWRIGHT").map(OsStr::new));
    options.add(given)?;
    if let Some(library) = &ours.library {
        preload::refuse_bad(library, &options, &[given.to_owned()], "--with heapwright:")?;
    }
    Ok(ours.with_options(name.to_owned(), given))
}

pub(crate) fn found(folders: &[PathBuf]) -> Vec<Allocator> {
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| children(folder)).collect();
    let mut all = Vec::new();
    for known in &KNOWN {
        let Some(library) = known.libraries.iter().find_map(|stem| newest(&files, stem)) else {
            continue;
        };
        let one = Allocator::new(known.name, Some(library));
        let without = (known.name == "mimalloc").then(|| {
            let (name, variable, value) = WITHOUT_HUGE_PAGES;
            let environment = BTreeMap::from([(variable.to_owned(), value.to_owned())]);
            Allocator { name: name.to_owned(), environment, ..one.clone() }
        });
        all.push(one);
        all.extend(without);
    }
    all
}

/// Returns the usable library `STEM.so` or `STEM.so.N` with the highest number.
fn newest(files: &[PathBuf], stem: &str) -> Option<PathBuf> {
    let version = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let rest = name.strip_prefix(stem)?.strip_prefix(".so")?;
        let is_version = rest.is_empty()
            || rest.starts_with('.') && rest.chars().all(|c| c == '.' || c.is_ascii_digit());
        is_version.then(|| numbers(rest))
    };
    let mut fitting: Vec<(Vec<u64>, &PathBuf)> =
        files.iter().filter_map(|path| Some((version(path)?, path))).collect();
    // The sort is stable: of equal versions, the one in the earlier folder stays first.
    fitting.sort_by(|a, b| b.0.cmp(&a.0));
    fitting.into_iter().find_map(|(_, path)| preload::checked(path).ok())
}

fn parse(text: &str) -> anyhow::Result<Allocator> {
    let refused = |why: &str| wrong(format!("--with '{text}': {why}"));
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| refused("is not of the form NAME=PATH or 'NAME=VAR=VALUE PATH'"))?;
    let name = name.trim();
    if name == GLIBC {
        return Err(refused("glibc is the C library's own malloc and has no library"));
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(letters) {
        return Err(refused(
            "the name must be of letters, digits, '-', '_', '.' and '+', 24 at most",
        ));
    }
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    let path = words.pop().ok_or_else(|| refused("there is no path"))?;
    let mut environment = BTreeMap::new();
    for word in words {
        let (variable, value) = word
            .split_once('=')
            .filter(|(variable, _)| is_variable(variable))
            .ok_or_else(|| refused(&format!("'{word}' is not of the form VAR=VALUE")))?;
        environment.insert(variable.to_owned(), value.to_owned());
    }
    let library = match usable(Path::new(path)) {
        Ok(library) => library,
        Err(error) => return Err(wrong(format!("--with {name}: {error:#}"))),
    };
    Ok(Allocator { name: name.to_owned(), library: Some(library), environment })
}

fn usable(path: &Path) -> anyhow::Result<PathBuf> {
    if path.is_dir() {
        bail!("{} is a folder, not a library", path.display());
    }
    preload::checked(path).context("cannot be preloaded")
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn complaint(text: &str) -> String {
        parse(text).expect_err("is refused").to_string()
    }

    #[test]
    fn what_is_not_an_allocator_is_reported() {
        assert_eq!(
            complaint("mimalloc"),
            "--with 'mimalloc': is not of the form NAME=PATH or 'NAME=VAR=VALUE PATH'"
        );
        assert_eq!(complaint("x="), "--with 'x=': there is no path");
        assert_eq!(
            complaint("x=nonsense /lib/x.so"),
            "--with 'x=nonsense /lib/x.so': 'nonsense' is not of the form VAR=VALUE"
        );
        assert_eq!(
            complaint("x=/nonexistent/x.so"),
            "--with x: cannot be preloaded: cannot read library /nonexistent/x.so: No such file or \
             directory (os error 2)"
        );
        assert_eq!(complaint("x=/tmp"), "--with x: /tmp is a folder, not a library");
        assert!(complaint("glibc=/x.so").contains("has no library"));
        assert!(complaint("a b=/x.so").contains("the name must be of letters"));
        assert!(complaint("=/x.so").contains("the name must be of letters"));
    }

    #[test]
    fn assignments_stand_before_the_path() {
        let library = preload::library(None).expect("is there");
        let text = format!("x=A=1 B_2=c=d {}", library.display());
        let one = parse(&text).expect("is one");
        assert_eq!((one.name.as_str(), &one.library), ("x", &Some(library)));
        let set: Vec<_> = one.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(set, [("A", "1"), ("B_2", "c=d")]);
    }

    #[test]
    fn a_found_one_does_not_race_beside_its_named_self() {
        let ours = preload::library(None).expect("is there");
        let named: Vec<OsString> = [("mine", ""), ("set", "A=1 ")]
            .map(|(name, set)| format!("{name}={set}{}", ours.display()).into())
            .to_vec();
        let all = all(ours, &named, &[], GLIBC).expect("are right");
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names[..2], [GLIBC, HEAPWRIGHT], "heapwright always races under its own name");
        assert!(names.ends_with(&["mine", "set"]), "{names:?}");
    }

    #[test]
    fn the_newest_usable_library_is_found() {
        let folder = std::env::temp_dir().join(format!("heapwright-found-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let ours = fs::read(preload::library(None).expect("is there")).expect("readable");
        for name in
            ["libmimalloc.so.2.0", "libmimalloc.so.10", "libmimalloc-secure.so", "libtcmalloc.so.4"]
        {
            fs::write(folder.join(name), &ours).expect("written");
        }
        for name in ["libmimalloc.so.11", "libmimalloc.so.bak", "libjemalloc.so.2"] {
            fs::write(folder.join(name), "no library").expect("written");
        }
        let found = found(std::slice::from_ref(&folder));
        fs::remove_dir_all(&folder).expect("removed");
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.name.as_str(), one.library_name().expect("has one")))
            .collect();
        let expected = [
            ("mimalloc", "libmimalloc.so.10"),
            ("mimalloc-no-thp", "libmimalloc.so.10"),
            ("mimalloc-secure", "libmimalloc-secure.so"),
            ("tcmalloc", "libtcmalloc.so.4"),
        ];
        assert_eq!(names, expected.map(|(name, file)| (name, file.to_owned())));
        assert_eq!(found[1].environment["MIMALLOC_ALLOW_THP"], "0");
    }
}
