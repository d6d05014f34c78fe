//! The names in one ELF file.
//!
//! Names come from the debug information where there is some (with the
//! functions that were inlined), else from the symbols, which give no lines.
//! What a distribution moved out of the file is looked for where it puts it:
//! `/usr/lib/debug/.build-id/ab/cdef.debug`. Split debug information (`.dwo`)
//! and supplementary files (`dwz`) are not followed: then symbols must do.
//!
//! Only the sections that are needed are read, and copied, since the file may
//! change or shrink under us. Whatever does not parse is left out.

use super::Function;
use addr2line::{Context, demangle_auto};
use gimli::{Dwarf, EndianRcSlice, RunTimeEndian, SectionId};
use object::SymbolKind;
use object::read::{Object as _, ObjectSection as _, ObjectSymbol as _, ReadCache};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

/// Where distributions put what they take out of files.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

type Bytes = EndianRcSlice<RunTimeEndian>;

/// The names in a file.
pub(super) struct File {
    context: Option<Context<Bytes>>,
    /// By address.
    symbols: Vec<Symbol>,
}

struct Symbol {
    address: u64,
    /// 0 where it is not said.
    size: u64,
    name: String,
}

impl File {
    /// Opens a file, if it is the one that was loaded: by its build-id, or, in
    /// a file without one, by its not having changed since the process began.
    pub(super) fn open(
        path: &Path,
        build_id: &[u8],
        began: Option<SystemTime>,
    ) -> anyhow::Result<Self> {
        let metadata = fs::metadata(path)?;
        anyhow::ensure!(metadata.is_file(), "not a file");
        let cache = ReadCache::new(fs::File::open(path)?);
        let object = object::File::parse(&cache)?;
        let found = object.build_id()?.unwrap_or_default();
        anyhow::ensure!(found == build_id, "another file");
        if build_id.is_empty() {
            let changed = metadata.modified()?;
            anyhow::ensure!(began.is_some_and(|began| changed <= began), "changed since");
        }
        let mut file = Self { context: context(&object), symbols: Vec::new() };
        file.add_symbols(&object);
        if let Some(path) = debug_file(build_id) {
            // It is there or not; if it is damaged, it might as well not be.
            let _ = file.add_debug_file(&path, build_id);
        }
        // Where several names share an address, the last of the longest.
        file.symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
        Ok(file)
    }

    fn add_debug_file(&mut self, path: &Path, build_id: &[u8]) -> anyhow::Result<()> {
        let cache = ReadCache::new(fs::File::open(path)?);
        let object = object::File::parse(&cache)?;
        anyhow::ensure!(object.build_id()?.unwrap_or_default() == build_id, "another file");
        if self.context.is_none() {
            self.context = context(&object);
        }
        self.add_symbols(&object);
        Ok(())
    }

    fn add_symbols<'a>(&mut self, object: &impl object::Object<'a>) {
        for symbol in object.symbols().chain(object.dynamic_symbols()) {
            if symbol.is_definition()
                && symbol.kind() == SymbolKind::Text
                && let Ok(name) = symbol.name()
                && !name.is_empty()
            {
                let (address, size) = (symbol.address(), symbol.size());
                self.symbols.push(Symbol { address, size, name: name.to_owned() });
            }
        }
    }

    /// The functions at an address of the file, inlined ones first.
    pub(super) fn functions(&self, address: u64) -> Vec<Function> {
        let mut functions = self.described(address).unwrap_or_default();
        // The outermost is a symbol's, too; the inlined ones are not.
        match functions.last_mut() {
            Some(outermost) if outermost.name.is_none() => outermost.name = self.symbol(address),
            Some(_) => {}
            None => {
                let name = self.symbol(address);
                functions
                    .extend(name.map(|name| Function { name: Some(name), ..Function::default() }));
            }
        }
        functions
    }

    /// What the debug information says.
    fn described(&self, address: u64) -> Option<Vec<Function>> {
        let mut frames = self.context.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut functions = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name =
                frame.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let location = frame.location;
            functions.push(Function {
                name,
                source: location.as_ref().and_then(|at| Some(at.file?.to_owned())),
                line: location.and_then(|at| at.line).filter(|&line| line != 0),
            });
        }
        Some(functions)
    }

    /// What the symbols say.
    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        let within = symbol.size == 0 || address - symbol.address < symbol.size;
        within.then(|| demangle_auto(Cow::from(&*symbol.name), None).into_owned())
    }
}

/// Where the debug information of a file may be that has none itself.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = PathBuf::from(format!("{DEBUG_FILES}/{first:02x}/{rest}.debug"));
    path.is_file().then_some(path)
}

/// The debug information of a file, if there is any.
fn context<'a>(object: &impl object::Object<'a>) -> Option<Context<Bytes>> {
    object.section_by_name(".debug_info").or_else(|| object.section_by_name(".zdebug_info"))?;
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = |id: SectionId| -> Result<Bytes, gimli::Error> {
        let data = object.section_by_name(id.name()).and_then(|part| part.uncompressed_data().ok());
        Ok(Bytes::new(Rc::from(data.as_deref().unwrap_or_default()), endian))
    };
    Context::from_dwarf(Dwarf::load(section).ok()?).ok()
}
