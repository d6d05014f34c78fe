//! Reads the frames of reported stacks again, and names them.
//!
//! ```text
//! a stack's number --(its record, read again)--> addresses --(the modules of that time)--> places
//! a place          --(the file of code)--------> functions and lines
//! ```
//!
//! Any number of stacks share a few thousand places. So each place is looked up once, and each file
//! is opened once. Equal stacks of several processes get the addresses of one of them.

use super::gather::Gathered;
use super::input::Fetch;
use super::model::{StackId, Stacks};
use super::modules::{Modules, NOWHERE, Spot};
use super::progress::Progress;
use super::source::Sources;
use crate::symbols::plumbing::is_plumbing;
use crate::symbols::{Frame, Function, Names, Place};
use std::collections::{BTreeSet, HashMap};

pub(super) struct Naming<'g> {
    gathered: &'g Gathered,
    progress: &'g Progress,
    fetch: Fetch,
    /// The names of each file of code; `None` until a name is needed.
    names: Vec<Option<Names>>,
    /// Frames by place, address, and step back to the call: 1, or 0 for an exact address.
    frames: HashMap<(Spot, u64, u64), u32>,
    functions: HashMap<(u32, u64), Vec<Function>>,
    /// The file and address to look up for each frame; `None` once it was looked up.
    unasked: Vec<Option<(u32, u64)>>,
    ids: HashMap<(u32, bool), StackId>,
    /// The number and exactness of each stack except the empty one.
    asked: Vec<(u32, bool)>,
    pub(super) stacks: Stacks,
    pub(super) cut: BTreeSet<StackId>,
    pub(super) sources: Sources,
}

impl<'g> Naming<'g> {
    pub(super) fn new(gathered: &'g Gathered, progress: &'g Progress) -> Self {
        Self {
            gathered,
            progress,
            fetch: Fetch::default(),
            names: gathered.files.list.iter().map(|_| None).collect(),
            frames: HashMap::new(),
            functions: HashMap::new(),
            unasked: Vec::new(),
            ids: HashMap::new(),
            asked: Vec::new(),
            stacks: Stacks::default(),
            cut: BTreeSet::new(),
            sources: Sources::default(),
        }
    }

    /// Frames are return addresses, so the byte before each belongs to the call. With `exact`, the
    /// first frame is the instruction itself.
    pub(super) fn stack(&mut self, number: u32, exact: bool) -> StackId {
        if number == 0 {
            return StackId::NONE;
        }
        if let Some(&id) = self.ids.get(&(number, exact)) {
            return id;
        }
        let source = self.gathered.stacks.list[number as usize];
        let modules = &self.gathered.epochs[source.epoch as usize];
        let read = self.fetch.stack(&self.gathered.records, source.record, source.at);
        let (addresses, cut) = read.unwrap_or_default();
        let frames: Box<[u32]> = addresses
            .iter()
            .enumerate()
            .map(|(at, &address)| self.frame(address, u64::from(!exact || at != 0), modules))
            .collect();
        let id = StackId(self.stacks.stacks.len() as u32);
        self.stacks.stacks.push(frames);
        if cut {
            self.cut.insert(id);
        }
        self.ids.insert((number, exact), id);
        self.asked.push((number, exact));
        id
    }

    /// Returns the number of stacks, for [`Self::forget`].
    pub(super) fn mark(&self) -> usize {
        self.asked.len()
    }

    /// Forgets the stacks since `mark`, which are not reported. Their frames stay; they are few.
    pub(super) fn forget(&mut self, mark: usize) {
        for asked in self.asked.drain(mark..) {
            if let Some(id) = self.ids.remove(&asked) {
                self.cut.remove(&id);
            }
        }
        self.stacks.stacks.truncate(1 + mark);
    }

    fn frame(&mut self, address: u64, back: u64, modules: &Modules) -> u32 {
        let asked = address.wrapping_sub(back);
        let spot = modules.spot(address, asked);
        let (files, frames, unasked) =
            (&self.gathered.files, &mut self.stacks.frames, &mut self.unasked);
        *self.frames.entry((spot, address, back)).or_insert_with(|| {
            let known = files.list.get(spot.file as usize);
            let place = known.map(|known| Place {
                path: known.file.path.clone(),
                offset: spot.offset,
                build_id: known.file.build_id.clone(),
            });
            frames.push(Frame { address, place, functions: Vec::new() });
            let ask = (spot.file != NOWHERE).then(|| (spot.file, spot.offset.wrapping_sub(back)));
            unasked.push(ask);
            frames.len() as u32 - 1
        })
    }

    pub(super) fn name(&mut self, stack: StackId) {
        for at in 0..self.stacks.stacks[stack.0 as usize].len() {
            let frame = self.stacks.stacks[stack.0 as usize][at] as usize;
            if let Some((file, offset)) = self.unasked[frame].take() {
                let functions = match self.functions.get(&(file, offset)) {
                    Some(functions) => functions.clone(),
                    None => {
                        let functions = self.names(file).functions(offset);
                        self.functions.insert((file, offset), functions.clone());
                        functions
                    }
                };
                self.stacks.frames[frame].functions = functions;
            }
        }
    }

    /// Reads lines of source for a named stack, around the innermost frame that has any.
    pub(super) fn source(&mut self, stack: StackId) {
        for &frame in &self.stacks.stacks[stack.0 as usize] {
            let frame = &self.stacks.frames[frame as usize];
            let Some(place) = &frame.place else { continue };
            let file = self.gathered.files.list.iter().position(|known| {
                known.file.path == place.path && known.file.build_id == place.build_id
            });
            let Some(file) = file else { continue };
            let built = self.names[file].as_ref().and_then(Names::changed);
            let rights = &self.gathered.files.list[file].rights;
            for function in frame.functions.iter().filter(|function| !is_plumbing(function)) {
                if let (Some(source), Some(line)) = (&function.source, function.line)
                    && self.sources.add(source, line, built, rights)
                {
                    return;
                }
            }
        }
    }

    /// Returns the variable at a place, as in `cache+0x10`.
    pub(super) fn variable(&mut self, spot: Spot) -> Option<String> {
        if spot.file == NOWHERE {
            return None;
        }
        let (name, within) = self.names(spot.file).variable(spot.offset)?;
        Some(if within == 0 { name } else { format!("{name}+{within:#x}") })
    }

    fn names(&mut self, file: u32) -> &Names {
        let known = &self.gathered.files.list[file as usize];
        self.names[file as usize].get_or_insert_with(|| {
            self.progress.reads(&known.file.path);
            Names::of(&known.file, known.began, &known.rights)
        })
    }
}
