//! Translates addresses into functions, files and lines.
//!
//! ```text
//! address --(modules of the record)--> module + offset --(its file)--> names
//! ```
//!
//! The first step needs the record only (`report::modules`), and works for every address in a
//! module. The second needs the file as it was loaded: wrong names are worse than none, so a file
//! with another build-id, or changed after the process began, is not used.
//!
//! ```text
//! file     the names in one ELF file        debug    its debug information
//! map      a file as memory                 plumbing functions that allocate for others
//! rights   the files that a record leads to demangle readable names
//! ```

mod debug;
mod demangle;
mod file;
pub(crate) mod map;
pub(crate) mod plumbing;
pub(crate) mod rights;

use file::File;
pub(crate) use rights::Rights;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An address of a stack, with its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) address: u64,
    pub(crate) place: Option<Place>,
    /// The function at the address, after the functions inlined there, innermost first.
    pub(crate) functions: Vec<Function>,
}

/// Recognises a preload library of heapwright by its name.
pub(crate) fn is_heapwright(path: &[u8]) -> bool {
    path.rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(b"libheapwright"))
}

impl Frame {
    pub(crate) fn is_of_heapwright(&self) -> bool {
        self.place.as_ref().is_some_and(|place| is_heapwright(&place.path))
    }

    /// Returns whether the frame is between a replaced C function and the check of its arguments:
    /// `heapwright_*`.
    pub(crate) fn is_inside_heapwright(&self) -> bool {
        let outermost = self.functions.last().and_then(|function| function.name.as_deref());
        self.is_of_heapwright() && outermost.is_some_and(|name| name.starts_with("heapwright_"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: Vec<u8>,
    pub(crate) offset: u64,
    pub(crate) build_id: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    /// The source, and the line in it.
    pub(crate) source: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    /// The linker's name, if it differs.
    pub(crate) symbol: Option<String>,
    /// Whether only a separate debug file names it. Without that file the function has no name; an
    /// inlined function has not even a call.
    pub(crate) is_private: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModuleFile {
    pub(crate) path: Vec<u8>,
    pub(crate) build_id: Vec<u8>,
}

/// The names in one file of code; empty if the file is gone or replaced.
pub(crate) struct Names(Option<File>);

impl Names {
    /// `began` is the process's start, in nanoseconds since 1970.
    pub(crate) fn of(module: &ModuleFile, began: u64, rights: &Rights) -> Self {
        use std::os::unix::ffi::OsStrExt;
        if !module.path.starts_with(b"/") {
            return Self(None);
        }
        let began = UNIX_EPOCH.checked_add(Duration::from_nanos(began));
        let path = Path::new(std::ffi::OsStr::from_bytes(&module.path));
        Self(File::open(path, &module.build_id, began, rights).ok())
    }

    pub(crate) fn functions(&self, address: u64) -> Vec<Function> {
        self.0.as_ref().map(|file| file.functions(address)).unwrap_or_default()
    }

    /// Returns the variable at an address of the file, and the offset in the variable.
    pub(crate) fn variable(&self, address: u64) -> Option<(String, u64)> {
        self.0.as_ref()?.variable(address)
    }

    pub(crate) fn changed(&self) -> Option<SystemTime> {
        self.0.as_ref()?.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;
    use std::fs;

    /// Returns the functions at an address of this process, by its map.
    fn named(address: u64) -> Vec<Function> {
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
        let build_id = file.build_id().expect("is ELF").unwrap_or_default().into();
        let module = ModuleFile { path: path.as_bytes().into(), build_id };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("is after 1970");
        Names::of(&module, u64::try_from(now.as_nanos()).expect("fits"), &Rights::own())
            .functions(address - start)
    }

    #[test]
    fn functions_of_this_program_have_names_and_lines() {
        let functions = named(named as fn(u64) -> Vec<Function> as usize as u64);
        let function = functions.last().expect("one");
        let name = function.name.as_deref().expect("has one");
        assert!(name.ends_with("symbols::tests::named"), "{name}");
        let source = function.source.as_deref().expect("has one");
        assert!(source.ends_with("symbols/mod.rs"), "{source}");
        assert!(function.line.is_some());
        assert!(
            function.symbol.as_deref().is_some_and(|name| name.starts_with("_")),
            "{function:?}"
        );
    }

    #[test]
    fn functions_of_the_c_library_have_names() {
        let functions = named(libc::getppid as *const () as usize as u64);
        let name = functions.last().and_then(|function| function.name.clone());
        assert!(name.is_some_and(|name| name.ends_with("getppid")), "{functions:?}");
    }

    #[test]
    fn files_that_are_none_have_no_names() {
        for path in ["", "[vdso]", "/", "/etc/passwd", "/dev/zero", "/nonexistent/x"] {
            let module = ModuleFile { path: path.into(), build_id: Vec::new() };
            let names = Names::of(&module, u64::MAX, &Rights::own());
            assert_eq!((names.functions(1), names.variable(1)), (Vec::new(), None), "{path}");
        }
    }
}
