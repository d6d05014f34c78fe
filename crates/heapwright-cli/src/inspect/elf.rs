//! The facts in an ELF file that decide whether a preload takes effect.
//!
//! [`super::judge`] judges them. Files may be large and damaged, so only the necessary tables are
//! read, and a parse failure is an error, never a panic. Of a file with 32 bits or the other byte
//! order only the header is read.

use super::allocators::{self, Allocator};
use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile, ProgramHeader as _, Sym as _, SymbolTable};
use object::read::{Object as _, ObjectSection as _, ReadCache};
use object::{Endianness, SectionIndex};
use std::fmt;
use std::fs::File;
use std::path::Path;

pub(super) const MAGIC: &[u8] = b"\x7fELF";

const MALLOC_FAMILY: [&str; 4] = ["malloc", "calloc", "realloc", "free"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program with a fixed address.
    Program,
    /// A program the loader may put anywhere.
    MovableProgram,
    Library,
    /// An object file, a core file, ...
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) bits: u8,
    pub(super) big_endian: bool,
    pub(super) machine: u16,
    pub(super) kind: Kind,
    pub(super) loader: Option<String>,
    /// The facts in its tables; `None` in a file with 32 bits or the other byte order.
    pub(super) inside: Option<Inside>,
}

/// The facts in a program's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) needed: Vec<String>,
    /// Whether it has section tables; without them, the facts below are unknown.
    pub(super) has_sections: bool,
    /// Whether it is not stripped.
    pub(super) has_symbols: bool,
    /// Functions of malloc's family that it exports; they precede the functions of libraries.
    pub(super) exports_malloc: Vec<String>,
    pub(super) imports_malloc: bool,
    /// Whether it has a malloc that it does not export.
    pub(super) private_malloc: bool,
    /// Allocators that it contains.
    pub(super) carries: Vec<&'static str>,
    /// Allocators whose own functions it imports, each with one such function.
    pub(super) asks_for: Vec<(&'static str, String)>,
    /// Allocators that it seems to contain, by a text.
    pub(super) hints_at: Vec<&'static str>,
    pub(super) sanitizer: Option<&'static str>,
    pub(super) go: bool,
    /// Its `#[global_allocator]`, if it is written in Rust.
    pub(super) rust: Option<RustAllocator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RustAllocator {
    /// The standard library's default, which is malloc.
    Default,
    /// An allocator that the program chose.
    Chosen,
    /// The program is stripped, or was optimised as a whole.
    NotVisible,
}

/// The symbols seen so far to which Rust compiles allocation.
///
/// Four functions `__rust_*` call the program's allocator, or the default's `__rdl_*` if it chose
/// none. Optimisation of the whole program may remove some. Then the symbols decide nothing.
#[derive(Default)]
struct RustSymbols {
    entries: [bool; 4],
    default: bool,
}

impl RustSymbols {
    const ENTRIES: [&str; 4] =
        ["__rust_alloc", "__rust_dealloc", "__rust_realloc", "__rust_alloc_zeroed"];

    /// Enters a symbol. Names are plain until Rust 1.87, and the end of a mangled path since.
    fn symbol(&mut self, name: &str) {
        for (seen, entry) in self.entries.iter_mut().zip(Self::ENTRIES) {
            *seen |= name.ends_with(entry);
        }
        self.default |= name.contains("__rdl_");
    }

    fn allocator(&self) -> Option<RustAllocator> {
        if self.default {
            Some(RustAllocator::Default)
        } else if self.entries == [true; 4] {
            Some(RustAllocator::Chosen)
        } else if self.entries.contains(&true) {
            Some(RustAllocator::NotVisible)
        } else {
            None
        }
    }
}

impl Facts {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path)?;
        let cache = ReadCache::new(file);
        let mut facts = header(&cache)?;
        let native = cfg!(target_endian = "big") == facts.big_endian;
        if facts.bits == 64 && native {
            let elf = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache)?;
            let endian = elf.endian();
            let mut has_dynamic = false;
            for segment in elf.elf_program_headers() {
                if let Some(loader) = segment.interpreter(endian, elf.data())? {
                    facts.loader = Some(String::from_utf8_lossy(loader).into_owned());
                }
                has_dynamic |= segment.p_type(endian) == elf::PT_DYNAMIC;
            }
            let inside = inside(&elf)?;
            if facts.kind == Kind::Library
                && (facts.loader.is_some() || !has_dynamic || inside.says_pie)
            {
                facts.kind = Kind::MovableProgram;
            }
            facts.inside = Some(inside.facts);
        }
        Ok(facts)
    }
}

/// Reads the part of the header that all ELF files share.
fn header(cache: &ReadCache<File>) -> anyhow::Result<Facts> {
    use object::ReadRef;
    let bytes: &[u8] = cache
        .read_bytes_at(0, 20)
        .map_err(|()| anyhow::anyhow!("it is shorter than an ELF header"))?;
    let big_endian = match bytes[5] {
        1 => false,
        2 => true,
        other => anyhow::bail!("unknown byte order {other}"),
    };
    let word = |at: usize| {
        let pair = [bytes[at], bytes[at + 1]];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    Ok(Facts {
        bits: match bytes[4] {
            1 => 32,
            2 => 64,
            other => anyhow::bail!("unknown ELF class {other}"),
        },
        big_endian,
        machine: word(18),
        kind: match word(16) {
            2 => Kind::Program,
            3 => Kind::Library,
            _ => Kind::Other,
        },
        loader: None,
        inside: None,
    })
}

type Elf64<'a> = ElfFile<'a, FileHeader64<Endianness>, &'a ReadCache<File>>;
type Symbols<'a> = SymbolTable<'a, FileHeader64<Endianness>, &'a ReadCache<File>>;

struct Tables {
    facts: Inside,
    says_pie: bool,
}

fn inside(elf: &Elf64<'_>) -> anyhow::Result<Tables> {
    let mut facts = Inside { has_sections: elf.sections().next().is_some(), ..Inside::default() };
    let mut says_pie = false;
    let dynamic = elf.elf_dynamic_table()?;
    for entry in &dynamic {
        if entry.tag == elf::DT_NEEDED {
            let name = dynamic.string(entry)?;
            facts.needed.push(String::from_utf8_lossy(name).into_owned());
        }
        if entry.tag == elf::DT_FLAGS_1 {
            says_pie |= entry.val & elf::DF_1_PIE.0 != 0;
        }
    }
    facts.sanitizer = facts.needed.iter().find_map(|library| allocators::sanitizer(library));

    each_symbol(elf, elf.elf_dynamic_symbol_table(), |symbol| {
        facts.dynamic_symbol(symbol);
    })?;
    facts.has_symbols = !elf.elf_symbol_table().is_empty();
    let mut rust = RustSymbols::default();
    each_symbol(elf, elf.elf_symbol_table(), |symbol| {
        if symbol.function {
            facts.symbol(symbol);
        }
        if symbol.defined {
            rust.symbol(symbol.name);
        }
    })?;

    for section in elf.sections() {
        match section.name_bytes().unwrap_or_default() {
            b".go.buildinfo" | b".note.go.buildid" => facts.go = true,
            b".rodata" => facts.texts(section.data().unwrap_or_default()),
            _ => {}
        }
    }
    facts.rust = rust.allocator().or(facts.rust);
    Ok(Tables { facts, says_pie })
}

#[derive(Clone, Copy)]
struct Symbol<'a> {
    name: &'a str,
    defined: bool,
    function: bool,
    /// Whether the symbol may be missing: a probe for an optional library.
    weak: bool,
}

/// Reads the string table at once: the file cache would take one read per name.
fn each_symbol(
    elf: &Elf64<'_>,
    table: &Symbols<'_>,
    mut visit: impl FnMut(Symbol<'_>),
) -> anyhow::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    let endian = elf.endian();
    let strings = elf.section_by_index(SectionIndex(table.string_section().0))?.data()?;
    for symbol in table.iter() {
        let start = symbol.st_name(endian) as usize;
        let Some(rest) = strings.get(start..) else { continue };
        let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
        if let Ok(name) = std::str::from_utf8(name)
            && !name.is_empty()
        {
            visit(Symbol {
                name,
                defined: !symbol.is_undefined(endian),
                function: matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC),
                weak: symbol.is_weak(),
            });
        }
    }
    Ok(())
}

impl Inside {
    fn dynamic_symbol(&mut self, symbol: Symbol<'_>) {
        if MALLOC_FAMILY.contains(&symbol.name) {
            if symbol.defined {
                self.exports_malloc.push(symbol.name.to_owned());
            } else {
                self.imports_malloc = true;
            }
        }
        if let Some(allocator) = allocators::of_symbol(symbol.name)
            && !symbol.defined
            && !symbol.weak
            && !self.asks_for.iter().any(|(known, _)| *known == allocator.name)
        {
            self.asks_for.push((allocator.name, symbol.name.to_owned()));
        }
        self.symbol(symbol);
    }

    fn symbol(&mut self, symbol: Symbol<'_>) {
        if self.sanitizer.is_none() && !symbol.weak {
            self.sanitizer = allocators::sanitizer(symbol.name);
        }
        if !symbol.defined {
            return;
        }
        if let Some(allocator) = allocators::of_symbol(symbol.name) {
            self.carry(allocator);
        }
        if symbol.name == "malloc" && self.exports_malloc.is_empty() {
            self.private_malloc = true;
        }
    }

    fn carry(&mut self, allocator: &'static Allocator) {
        if !self.carries.contains(&allocator.name) {
            self.carries.push(allocator.name);
        }
    }

    /// Searches a program's constants, which stripping keeps.
    fn texts(&mut self, constants: &[u8]) {
        for (allocator, text) in allocators::with_text() {
            if contains(constants, text.as_bytes()) {
                self.hints_at.push(allocator.name);
            }
        }
        // The path of the standard library's sources, which panic messages contain.
        if contains(constants, b"/rustc/") {
            self.rust = Some(RustAllocator::NotVisible);
        }
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    let Some((&first, _)) = needle.split_first() else { return true };
    let mut rest = haystack;
    while let Some(at) = rest.iter().position(|&byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(needle) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

pub(super) fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "x86",
        8 => "MIPS",
        20 => "PowerPC",
        21 => "PowerPC64",
        22 => "S/390",
        40 => "ARM",
        62 => "x86-64",
        183 => "AArch64",
        243 => "RISC-V",
        258 => "LoongArch",
        other => return format!("machine {other}"),
    };
    name.to_owned()
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = machine_name(self.machine);
        write!(f, "ELF {}-bit {machine} ", self.bits)?;
        match self.kind {
            Kind::Library => f.write_str("shared library"),
            Kind::Other => f.write_str("file that is no program"),
            Kind::Program | Kind::MovableProgram => {
                f.write_str("program")?;
                match &self.loader {
                    Some(loader) => write!(f, ", loaded by {loader}"),
                    None if self.inside.is_none() => Ok(()),
                    None if self.kind == Kind::Program => f.write_str(", static"),
                    None => f.write_str(", static (PIE)"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_anywhere() {
        assert!(contains(b"xx/rustc/abc", b"/rustc/"));
        assert!(contains(b"/r/rustc/", b"/rustc/"));
        assert!(!contains(b"/rust", b"/rustc/"));
        assert!(!contains(b"", b"/rustc/"));
    }

    #[test]
    fn rust_allocators_are_known_by_their_symbols() {
        let of = |names: &[&str]| {
            let mut symbols = RustSymbols::default();
            names.iter().for_each(|name| symbols.symbol(name));
            symbols.allocator()
        };
        let mangled = RustSymbols::ENTRIES.map(|entry| format!("_RNvCs7___rustc12_{entry}"));
        let mangled = mangled.each_ref().map(String::as_str);
        assert_eq!(of(&RustSymbols::ENTRIES), Some(RustAllocator::Chosen));
        assert_eq!(of(&mangled), Some(RustAllocator::Chosen));
        assert_eq!(of(&mangled[..2]), Some(RustAllocator::NotVisible));
        assert_eq!(of(&["__rust_alloc", "__rdl_dealloc"]), Some(RustAllocator::Default));
        assert_eq!(of(&["malloc", "rust_alloc"]), None);
    }

    #[test]
    fn this_test_is_a_movable_rust_program_on_malloc() {
        let facts = Facts::read(Path::new("/proc/self/exe")).expect("is ELF");
        assert_eq!(facts.kind, Kind::MovableProgram);
        assert!(facts.loader.is_some());
        let inside = facts.inside.expect("is of this machine");
        assert!(inside.imports_malloc);
        assert!(inside.needed.iter().any(|library| library.starts_with("libc.so")));
        assert_eq!(inside.rust, Some(RustAllocator::Default));
        assert_eq!(inside.exports_malloc, [""; 0]);
        assert!(!inside.go);
    }

    #[test]
    fn damaged_files_are_errors() {
        let folder = crate::statistics::Folder::quietly().expect("made");
        let path = folder.path().join("cut");
        let whole = std::fs::read("/bin/true").or_else(|_| std::fs::read("/usr/bin/true"));
        let whole = whole.expect("there is a true");
        // Every cut and every wrong byte of the header gives facts or an error, never a panic.
        for length in (4..whole.len()).step_by(97) {
            std::fs::write(&path, &whole[..length]).expect("written");
            let _ = Facts::read(&path);
        }
        for at in 4..64 {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            std::fs::write(&path, &bytes).expect("written");
            let _ = Facts::read(&path);
        }
        std::fs::write(&path, b"\x7fELF\x02\x01").expect("written");
        let error = Facts::read(&path).expect_err("is too short");
        assert_eq!(error.to_string(), "it is shorter than an ELF header");
    }
}
