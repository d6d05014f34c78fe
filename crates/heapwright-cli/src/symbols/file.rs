//! The names of functions and variables in one ELF file.
//!
//! Names come from the debug information, with inlined functions ([`super::debug`] finds it).
//! Without it, they come from the symbols, which have no lines. Variables always come from these.
//!
//! An exported symbol's name replaces the name in the debug information. So `strdup` is `strdup`
//! with and without the C library's debug file, which calls it `__GI___strdup`. Functions that
//! only a separate debug file names are private.
//!
//! Files are mapped; symbols are collected and sorted at the first request. Parts that do not parse
//! are left out.

use super::debug::{self, Elf, ElfSymbol, Information};
use super::demangle::{demangled, is_mangled};
use super::{Function, Rights};
use object::SymbolKind;
use object::read::{Object as _, ObjectSymbol as _};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

pub(super) struct File {
    object: Elf,
    separate: Option<Elf>,
    information: Option<Information>,
    functions: OnceCell<Symbols>,
    exported: OnceCell<Symbols>,
    separate_functions: OnceCell<Symbols>,
    variables: OnceCell<Symbols>,
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
    /// Refuses a file with another build-id. Without a build-id, it refuses a file that changed
    /// after the process began.
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
        let [functions, exported, separate_functions, variables] = [const { OnceCell::new() }; 4];
        Ok(Self {
            object,
            separate,
            information,
            functions,
            exported,
            separate_functions,
            variables,
            changed,
        })
    }

    /// Returns functions, inlined ones first.
    pub(super) fn functions(&self, address: u64) -> Vec<Function> {
        let mut functions = self.described(address).unwrap_or_default();
        // The outermost function has a symbol; inlined ones have none.
        let Some(outermost) = functions.last_mut() else {
            functions.extend(self.symbol(address).or_else(|| self.separate_symbol(address)));
            return functions;
        };
        // A lambda's debug information may lack its parent's name.
        let is_vague = outermost.name.as_deref().is_none_or(|name| name == "operator()");
        let is_from_symbols = is_vague || outermost.is_private;
        let symbol = if is_from_symbols { self.symbol(address) } else { self.exported(address) };
        if let Some(symbol) = symbol {
            (outermost.name, outermost.symbol) = (symbol.name, symbol.symbol);
            outermost.is_private = false;
        } else if outermost.symbol.is_none()
            && let Some(symbol) = self.symbol(address)
        {
            // The linker name of a static function, a compiler's copy or an alias is only in the
            // symbols.
            let name = symbol.symbol.or(symbol.name);
            outermost.symbol = name.filter(|name| outermost.name.as_ref() != Some(name));
        }
        functions
    }

    /// Returns the variable, and the offset in it.
    pub(super) fn variable(&self, address: u64) -> Option<(String, u64)> {
        let variables = self.variables.get_or_init(|| {
            let own = self.object.symbols().chain(self.object.dynamic_symbols());
            let separate = self.separate.iter().flat_map(|object| object.symbols());
            Symbols::of(SymbolKind::Data, own.chain(separate))
        });
        let found = variables.at(address)?;
        Some((demangled(found.name), address - found.address))
    }

    fn described(&self, address: u64) -> Option<Vec<Function>> {
        let mut frames = self.information.as_ref()?.frames(address)?;
        let mut functions = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let raw = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            // A static function has no linker name here, and its bare name may look mangled: `pm`.
            let name = raw.as_deref().map(|raw| match is_mangled(raw) {
                true => demangled(raw),
                false => raw.to_owned(),
            });
            let location = frame.location.as_ref();
            functions.push(Function {
                symbol: raw.map(Cow::into_owned).filter(|raw| Some(raw) != name.as_ref()),
                name,
                source: location.and_then(|at| Some(at.file?.to_owned())),
                line: location.and_then(|at| at.line).filter(|&line| line != 0),
                column: location.and_then(|at| at.column).filter(|&column| column != 0),
                is_private: self.separate.is_some(),
            });
        }
        Some(functions)
    }

    fn symbol(&self, address: u64) -> Option<Function> {
        let all = || self.object.symbols().chain(self.object.dynamic_symbols());
        let functions = self.functions.get_or_init(|| Symbols::of(SymbolKind::Text, all()));
        Some(functions.at(address)?.function())
    }

    /// Returns the function by the exported symbols.
    fn exported(&self, address: u64) -> Option<Function> {
        let all = || self.object.dynamic_symbols();
        let exported = self.exported.get_or_init(|| Symbols::of(SymbolKind::Text, all()));
        Some(exported.at(address)?.function())
    }

    /// Returns the function by the separate debug file.
    fn separate_symbol(&self, address: u64) -> Option<Function> {
        let symbols = || self.separate.iter().flat_map(|object| object.symbols());
        let functions =
            self.separate_functions.get_or_init(|| Symbols::of(SymbolKind::Text, symbols()));
        Some(Function { is_private: true, ..functions.at(address)?.function() })
    }
}

impl Symbols {
    fn of<'f>(kind: SymbolKind, all: impl Iterator<Item = ElfSymbol<'f>>) -> Self {
        let mut symbols = Vec::new();
        for symbol in all {
            if symbol.is_definition()
                && symbol.kind() == kind
                && let Ok(name) = symbol.name()
                && !name.is_empty()
            {
                symbols.push(Symbol { address: symbol.address(), size: symbol.size(), name });
            }
        }
        // If several names have one address, the largest symbol counts, and then the shortest name.
        symbols.sort_by_key(|symbol| {
            let length = symbol.name.split('@').next().map_or(0, str::len);
            (symbol.address, symbol.size, Reverse((length, symbol.name)))
        });
        Self(symbols)
    }

    fn at(&self, address: u64) -> Option<&Symbol> {
        let after = self.0.partition_point(|symbol| symbol.address <= address);
        let symbol = self.0.get(after.checked_sub(1)?)?;
        let within = symbol.size == 0 || address - symbol.address < symbol.size;
        within.then_some(symbol)
    }
}

impl Symbol {
    fn function(&self) -> Function {
        let name = demangled(self.name);
        let symbol = Some(self.name.to_owned()).filter(|symbol| *symbol != name);
        Function { name: Some(name), symbol, ..Function::default() }
    }
}
