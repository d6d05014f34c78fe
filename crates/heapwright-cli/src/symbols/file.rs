//! The names of functions and variables in one ELF file.
//!
//! Names come from the debug information, with inlined functions ([`super::debug`] finds it).
//! Without it, they come from the symbols, which have no lines. Variables come from the symbols
//! only.
//!
//! Files are mapped, and symbols are collected and sorted at the first request: a report needs a
//! few pages of a large program. Parts that do not parse are left out.

use super::debug::{self, Elf, Information};
use super::{Function, Rights};
use addr2line::demangle_auto;
use object::SymbolKind;
use object::read::{Object as _, ObjectSymbol as _};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The names in an ELF file.
pub(super) struct File {
    object: Elf,
    /// The separate debug file.
    separate: Option<Elf>,
    information: Option<Information>,
    functions: OnceCell<Symbols>,
    variables: OnceCell<Symbols>,
    /// The time of the last change.
    pub(super) changed: Option<SystemTime>,
}

/// Symbols by address.
struct Symbols(Vec<Symbol>);

struct Symbol {
    address: u64,
    /// The size; 0: unknown.
    size: u64,
    name: &'static str,
}

impl File {
    /// Opens a file if it is the loaded one: by its build-id, or without one, by its last change
    /// before the process began.
    pub(super) fn open(
        path: &Path,
        build_id: &[u8],
        began: Option<SystemTime>,
        rights: &Rights,
    ) -> anyhow::Result<Self> {
        let object = debug::open(path, rights)?;
        let changed = fs::metadata(path)?.modified().ok();
        let found = object.build_id()?.unwrap_or_default();
        anyhow::ensure!(found == build_id, "another file");
        if build_id.is_empty() {
            let unchanged = changed.zip(began).is_some_and(|(changed, began)| changed <= began);
            anyhow::ensure!(unchanged, "changed since");
        }
        let mut information = Information::of(&object, path, rights);
        let mut separate = None;
        if information.is_none() {
            // A damaged debug file counts as missing.
            separate = debug::separate(&object, path, build_id, rights);
            information =
                separate.as_ref().and_then(|object| Information::of(object, path, rights));
        }
        let (functions, variables) = (OnceCell::new(), OnceCell::new());
        Ok(Self { object, separate, information, functions, variables, changed })
    }

    /// Returns the functions at an address of the file, inlined ones first.
    pub(super) fn functions(&self, address: u64) -> Vec<Function> {
        let mut functions = self.described(address).unwrap_or_default();
        // The outermost function has a symbol; inlined ones have none.
        match functions.last_mut() {
            // A lambda's debug information may lack its parent's name.
            Some(outermost)
                if outermost.name.as_deref().is_none_or(|name| name == "operator()") =>
            {
                if let Some(symbol) = self.symbol(address) {
                    (outermost.name, outermost.symbol) = (symbol.name, symbol.symbol);
                }
            }
            Some(_) => {}
            None => functions.extend(self.symbol(address)),
        }
        functions
    }

    /// Returns the variable at an address of the file, and the offset in the variable.
    pub(super) fn variable(&self, address: u64) -> Option<(String, u64)> {
        let found = self.variables.get_or_init(|| self.collect(&[SymbolKind::Data])).at(address)?;
        Some((demangled(found.name), address - found.address))
    }

    /// Returns the functions by the debug information.
    fn described(&self, address: u64) -> Option<Vec<Function>> {
        let mut frames = self.information.as_ref()?.frames(address)?;
        let mut functions = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let raw = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let name =
                frame.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let location = frame.location.as_ref();
            functions.push(Function {
                symbol: raw.map(Cow::into_owned).filter(|raw| Some(raw) != name.as_ref()),
                name,
                source: location.and_then(|at| Some(at.file?.to_owned())),
                line: location.and_then(|at| at.line).filter(|&line| line != 0),
                column: location.and_then(|at| at.column).filter(|&column| column != 0),
            });
        }
        Some(functions)
    }

    /// Returns the function by the symbols.
    fn symbol(&self, address: u64) -> Option<Function> {
        let functions = self.functions.get_or_init(|| self.collect(&[SymbolKind::Text]));
        let found = functions.at(address)?;
        let name = demangled(found.name);
        let symbol = Some(found.name.to_owned()).filter(|symbol| *symbol != name);
        Some(Function { name: Some(name), symbol, ..Function::default() })
    }

    fn collect(&self, kinds: &[SymbolKind]) -> Symbols {
        let mut symbols = Vec::new();
        for object in [Some(&self.object), self.separate.as_ref()].into_iter().flatten() {
            for symbol in object.symbols().chain(object.dynamic_symbols()) {
                if symbol.is_definition()
                    && kinds.contains(&symbol.kind())
                    && let Ok(name) = symbol.name()
                    && !name.is_empty()
                {
                    symbols.push(Symbol { address: symbol.address(), size: symbol.size(), name });
                }
            }
        }
        // If several names have one address, the last of the longest symbols counts.
        symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
        Symbols(symbols)
    }
}

impl Symbols {
    fn at(&self, address: u64) -> Option<&Symbol> {
        let after = self.0.partition_point(|symbol| symbol.address <= address);
        let symbol = self.0.get(after.checked_sub(1)?)?;
        let within = symbol.size == 0 || address - symbol.address < symbol.size;
        within.then_some(symbol)
    }
}

fn demangled(name: &str) -> String {
    demangle_auto(Cow::from(name), None).into_owned()
}
