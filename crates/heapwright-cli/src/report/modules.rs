//! Finds the file of code at an address, at a moment of a process.
//!
//! A record lists the loaded files, and lists them again after each change. A new module replaces
//! the module with its number, and all modules that it overlaps: they were unloaded. Each stack
//! refers to the modules that were loaded when the stack was written (an *epoch*).
//!
//! Files are numbered over all processes, by path and build-id. So a place in code (file and
//! offset) is the same in every process.

use crate::symbols::{ModuleFile, Rights};
use heapwright_record::debug::Module;
use std::collections::HashMap;

/// The number that stands for no file of code.
pub(super) const NOWHERE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Files {
    numbers: HashMap<ModuleFile, u32>,
    pub(super) list: Vec<Known>,
}

pub(super) struct Known {
    pub(super) file: ModuleFile,
    /// The start of the first process that loaded the file. A file that changed later is not used.
    pub(super) began: u64,
    /// The rights of the owners of the records that name the file.
    pub(super) rights: Rights,
}

impl Files {
    /// Returns the number of a module's file in a process that began at `began`.
    pub(super) fn number(&mut self, module: &Module<'_>, began: u64, owner: u32) -> u32 {
        let mut path = module.path.bytes.to_vec();
        if module.path.cut {
            // A name that was cut may name another file, so it is changed to one that names none.
            path.extend_from_slice(b"...");
            path.splice(..0, *b"...");
        }
        let file = ModuleFile { path, build_id: module.build_id.bytes.to_vec() };
        let list = &mut self.list;
        let number = *self.numbers.entry(file).or_insert_with_key(|file| {
            list.push(Known { file: file.clone(), began, rights: Rights::default() });
            list.len() as u32 - 1
        });
        let known = &mut list[number as usize];
        known.began = known.began.min(began);
        known.rights.add(owner);
        number
    }
}

/// The modules of a process, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Modules(Vec<Loaded>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    id: u32,
    start: u64,
    end: u64,
    bias: u64,
    file: u32,
}

/// An offset in a file of code, or an address outside all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) file: u32,
    pub(super) offset: u64,
}

impl Modules {
    pub(super) fn add(&mut self, module: &Module<'_>, file: u32) {
        let Module { id, start, end, bias, .. } = *module;
        let overlaps = |other: &Loaded| start < end && start < other.end && other.start < end;
        self.0.retain(|other| other.id != id && !overlaps(other));
        if start < end {
            let at = self.0.partition_point(|other| other.start < start);
            self.0.insert(at, Loaded { id, start, end, bias, file });
        }
    }

    /// The byte at `asked` decides the module: behind a call another module may begin.
    pub(super) fn spot(&self, address: u64, asked: u64) -> Spot {
        let after = self.0.partition_point(|module| module.start <= asked);
        match after.checked_sub(1).map(|at| &self.0[at]) {
            Some(module) if asked < module.end => {
                Spot { file: module.file, offset: address.wrapping_sub(module.bias) }
            }
            _ => Spot { file: NOWHERE, offset: address },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(id: u32, start: u64, end: u64) -> Module<'static> {
        Module { id, start, end, bias: start, path: "/x".into(), ..Module::default() }
    }

    #[test]
    fn a_module_takes_the_place_of_others() {
        let mut modules = Modules::default();
        modules.add(&module(1, 0x1000, 0x2000), 7);
        modules.add(&module(2, 0x3000, 0x4000), 8);
        let at = |modules: &Modules, address| modules.spot(address, address);
        assert_eq!(at(&modules, 0x1fff), Spot { file: 7, offset: 0xfff });
        assert_eq!(at(&modules, 0x2000), Spot { file: NOWHERE, offset: 0x2000 });
        assert_eq!(modules.spot(0x2000, 0x1fff), Spot { file: 7, offset: 0x1000 });
        modules.add(&module(3, 0x1800, 0x2800), 9);
        assert_eq!(at(&modules, 0x1000).file, NOWHERE);
        assert_eq!(at(&modules, 0x1800).file, 9);
        modules.add(&module(2, 0x8000, 0x9000), 10);
        assert_eq!((at(&modules, 0x3000).file, at(&modules, 0x8000).file), (NOWHERE, 10));
        modules.add(&module(5, 0x8100, 0x8100), 11);
        assert_eq!(at(&modules, 0x8100).file, 10);
    }

    #[test]
    fn a_file_has_one_number() {
        let mut files = Files::default();
        let first = files.number(&module(1, 0, 1), 50, 0);
        assert_eq!(files.number(&module(2, 5, 9), 40, 0), first);
        assert_eq!(files.list[first as usize].began, 40);
        let other = Module { build_id: (&[1_u8][..]).into(), ..module(1, 0, 1) };
        assert_ne!(files.number(&other, 50, 0), first);
    }
}
