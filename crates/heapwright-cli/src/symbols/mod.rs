//! From addresses to functions, files and lines.
//!
//! ```text
//! address --(modules of the record)--> module + offset --(its file)--> names
//! ```
//!
//! The first step needs the record only, and always works where the address was
//! in a module. The second needs the file as it was loaded: one whose build-id
//! is another, or that was changed after the process began, is not asked, since
//! wrong names are worse than none. A file is opened when the first address in
//! it comes, and once.

mod file;

use file::File;
use heapwright_record::debug::{Frames, Module};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An address of a stack, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) address: u64,
    /// Where it lies.
    pub(crate) place: Option<Place>,
    /// The function; before it, those that were compiled into it there,
    /// innermost first.
    pub(crate) functions: Vec<Function>,
}

/// A byte of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: Vec<u8>,
    /// The address as the file has it.
    pub(crate) offset: u64,
    pub(crate) build_id: Vec<u8>,
}

/// A function, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    /// The source, and the line in it.
    pub(crate) source: Option<String>,
    pub(crate) line: Option<u32>,
}

/// Looks addresses up, and remembers the files.
pub(crate) struct Symbols {
    /// When the process began; files changed later are not its own.
    began: Option<SystemTime>,
    /// By path and build-id; none where the file is gone or another.
    files: HashMap<(Vec<u8>, Vec<u8>), Option<File>>,
}

impl Symbols {
    /// For a process that began at this time, in nanoseconds since 1970.
    pub(crate) fn new(began: Option<u64>) -> Self {
        let began = began.and_then(|ns| UNIX_EPOCH.checked_add(Duration::from_nanos(ns)));
        Self { began, files: HashMap::new() }
    }

    /// Looks a stack up. Frames are return addresses, whose call is the byte
    /// before; with `exact`, the first one is the instruction itself.
    pub(crate) fn stack(
        &mut self,
        frames: &Frames<'_>,
        exact: bool,
        modules: &BTreeMap<u32, Module<'_>>,
    ) -> Vec<Frame> {
        frames
            .iter()
            .enumerate()
            .map(|(index, address)| {
                let back = if exact && index == 0 { 0 } else { 1 };
                self.frame(address, back, modules)
            })
            .collect()
    }

    fn frame(&mut self, address: u64, back: u64, modules: &BTreeMap<u32, Module<'_>>) -> Frame {
        let asked = address.wrapping_sub(back);
        // The one with the highest number is the youngest.
        let module =
            modules.values().rev().find(|module| (module.start..module.end).contains(&asked));
        let Some(module) = module else { return Frame { address, ..Frame::default() } };
        let functions = self
            .file(module)
            .map(|file| file.functions(asked.wrapping_sub(module.bias)))
            .unwrap_or_default();
        let place = Place {
            path: module.path.bytes.to_vec(),
            offset: address.wrapping_sub(module.bias),
            build_id: module.build_id.bytes.to_vec(),
        };
        Frame { address, place: Some(place), functions }
    }

    fn file(&mut self, module: &Module<'_>) -> Option<&File> {
        use std::os::unix::ffi::OsStringExt;
        // A path that was cut names another file, if any.
        if module.path.cut || !module.path.bytes.starts_with(b"/") {
            return None;
        }
        let path = module.path.bytes.to_vec();
        let build_id = module.build_id.bytes.to_vec();
        let began = self.began;
        self.files
            .entry((path.clone(), build_id))
            .or_insert_with_key(|(_, build_id)| {
                let path = PathBuf::from(std::ffi::OsString::from_vec(path));
                File::open(&path, build_id, began).ok()
            })
            .as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;
    use std::fs;

    /// The module of this process that an address is in, from its map.
    fn named(address: u64) -> Frame {
        let maps = fs::read_to_string("/proc/self/maps").expect("there");
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let hex = |digits| u64::from_str_radix(digits, 16).ok();
            Some((hex(start)?, hex(end)?, words.nth(4)?.to_owned()))
        };
        let lines: Vec<_> = maps.lines().filter_map(line).collect();
        let inside = |(start, end, _): &&(u64, u64, String)| (*start..*end).contains(&address);
        let (_, _, path) = lines.iter().find(inside).expect("is in a file");
        let of_file = || lines.iter().filter(|(_, _, name)| name == path);
        let start = of_file().map(|line| line.0).min().expect("one");
        let bytes = fs::read(path).expect("there");
        let file = object::File::parse(&*bytes).expect("is ELF");
        let module = Module {
            id: 1,
            start,
            end: of_file().map(|line| line.1).max().expect("one"),
            bias: start,
            build_id: file.build_id().expect("is ELF").unwrap_or_default().into(),
            path: path.as_str().into(),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("is after 1970");
        let mut symbols = Symbols::new(u64::try_from(now.as_nanos()).ok());
        let modules = BTreeMap::from([(1, module)]);
        symbols.stack(&Frames::new(&[address]), true, &modules).remove(0)
    }

    #[test]
    fn functions_of_this_program_have_names_and_lines() {
        let frame = named(named as fn(u64) -> Frame as usize as u64);
        let function = frame.functions.last().expect("one");
        let name = function.name.as_deref().expect("has one");
        assert!(name.ends_with("symbols::tests::named"), "{name}");
        let source = function.source.as_deref().expect("has one");
        assert!(source.ends_with("symbols/mod.rs"), "{source}");
        assert!(function.line.is_some());
    }

    #[test]
    fn functions_of_the_c_library_have_names() {
        let frame = named(libc::getppid as *const () as usize as u64);
        let name = frame.functions.last().and_then(|function| function.name.clone());
        assert!(name.is_some_and(|name| name.ends_with("getppid")), "{frame:?}");
    }

    #[test]
    fn addresses_outside_of_modules_stay_addresses() {
        let mut symbols = Symbols::new(None);
        let frames = symbols.stack(&Frames::new(&[0, u64::MAX]), false, &BTreeMap::new());
        let bare = |address| Frame { address, ..Frame::default() };
        assert_eq!(frames, [bare(0), bare(u64::MAX)]);
    }
}
