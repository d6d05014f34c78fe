//! The record file: what the command reads when the process is no more.
//!
//! ```text
//!   put(entry)  put_stack  put_thread          flush()
//!     |  encoded, one behind the other            |  one write
//!     v                                           v
//!   | entry | entry | ......... pending  |  -->  PREFIX.<pid>
//! ```
//!
//! The file is made when the process starts (of a forked child, with the first thing
//! there is to say), opened and closed for each
//! write: a program may close what it does not know. What belongs together is one
//! write, so that of a process that dies all is there or nothing, and so that a copy of
//! the process (`leaks`) may write to the same file meanwhile. A program that another
//! one becomes by `exec` goes on in the same file, behind a beginning of its own.
//!
//! A module's number is made of where it is, so that two threads that write at once give it the
//! same one.
//!
//! Whoever has one holds its lock. Called by `debug` (`report`, `leaks`), for findings, and by
//! `samples`, for profiles.

use core::ops::Range;

use heapwright_record::debug::{self as record, Encoder, Entry, Frames, HEADER};

use crate::files::{self, PATH, Prefix};
use crate::os;
use crate::stacks::{self, Stack};
/// Modules whose entry is in the record already.
const MODULES: usize = 256;
/// Stacks whose entry is, by the end of their number: some are written twice.
const STACKS: usize = 2048;
/// Bytes that are written at once, at most.
const PENDING: usize = 32 << 10;

/// See the module.
pub(crate) struct Recorder {
    /// The file's name without the number of the process; nothing: none is wanted.
    path: Prefix,
    /// Whether the file lies in the folder of a user that a process of root's became.
    is_of_user: bool,
    /// An open file to write to, instead of one by name.
    file: Option<i32>,
    /// When the process began, in nanoseconds since 1970; 0: when its record does.
    began: u64,
    /// The process whose record has its beginning; 0: none yet.
    process: u32,
    broken: bool,
    has_map: bool,
    modules: [usize; MODULES],
    module_count: usize,
    stacks: [u32; STACKS],
    pending: [u8; PENDING],
    length: usize,
}

impl Recorder {
    /// One that writes nowhere.
    pub(crate) const fn new() -> Self {
        Self {
            path: Prefix::none(),
            is_of_user: false,
            file: None,
            began: 0,
            process: 0,
            broken: false,
            has_map: false,
            modules: [0; MODULES],
            module_count: 0,
            stacks: [0; STACKS],
            pending: [0; PENDING],
            length: 0,
        }
    }

    /// Writes to the file `prefix.<pid>` from now on.
    pub(crate) fn begin(&mut self, prefix: &[u8]) {
        self.path.set(prefix);
    }

    /// Writes to the open file `file` from now on, and from the beginning: a record of its own.
    pub(crate) fn begin_in(&mut self, file: i32) {
        self.file = Some(file);
        self.process = 0;
        self.broken = false;
    }

    /// Says that the process began at that time, in nanoseconds since 1970.
    pub(crate) fn set_beginning(&mut self, began: u64) {
        self.began = began;
    }

    /// A forked child has a record of its own.
    pub(crate) fn in_child(&mut self) {
        self.process = 0;
        self.length = 0;
    }

    /// Whether a record is wanted, and can be had.
    pub(crate) fn is_wanted(&self) -> bool {
        (self.path.is_given() || self.file.is_some()) && !self.broken
    }

    /// Whether this process has a record.
    pub(crate) fn has_begun(&self) -> bool {
        self.process == os::process_id()
    }

    /// Makes the record, if one is wanted and this process has none yet. False: there
    /// is none.
    pub(crate) fn begins(&mut self) -> bool {
        if self.is_wanted() && !self.has_begun() {
            self.process = os::process_id();
            self.module_count = 0;
            self.has_map = false;
            self.stacks = [0; STACKS];
            self.length = 0;
            self.write_beginning();
        }
        self.is_wanted()
    }

    /// Makes the file, and says in it whose it is.
    fn write_beginning(&mut self) {
        let path = self.path.of(self.process);
        self.is_of_user = false;
        let mut is_made = self.append(&HEADER, true);
        if !is_made && self.file.is_none() {
            self.is_of_user = true;
            is_made = self.append(&HEADER, true);
        }
        if !is_made {
            self.broken = true;
            if self.file.is_some() {
                return;
            }
            let line = crate::text::Line::new().text("cannot make the record file \"");
            line.bytes(files::shown(&path)).text("\": look at its folder").write();
            return;
        }
        let mut exe = [0; PATH];
        let exe_length = os::program_path(&mut exe);
        let mut command = [0; 1024];
        let command_length = files::command_line(&mut command);
        let mut options = [0; 512];
        let options_length = os::environment(b"HEAPWRIGHT", &mut options).unwrap_or(0).min(512);
        self.put(&Entry::Process(record::Process {
            pid: self.process,
            parent: os::parent_id(),
            time: if self.began == 0 { os::unix_ns() } else { self.began },
            page_size: os::kernel_page_size() as u32,
            version: env!("CARGO_PKG_VERSION").into(),
            exe: exe[..exe_length.min(PATH)].into(),
            options: options[..options_length].into(),
            command: command[..command_length].into(),
        }));
        self.flush();
    }

    /// Adds an entry. (Nothing is written before [`Recorder::flush`], or before there
    /// is more than fits.)
    pub(crate) fn put(&mut self, entry: &Entry<'_>) {
        let mut buffer = [0; 4096];
        let mut encoder = Encoder::new(&mut buffer);
        let bytes = encoder.entry(entry);
        if bytes.len() > PENDING - self.length {
            self.flush();
        }
        if let Some(place) = self.pending.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    /// Writes what was put. A write that came out short is not followed by another.
    pub(crate) fn flush(&mut self) {
        let bytes = &self.pending[..self.length];
        if !bytes.is_empty() && !self.broken && !self.append(bytes, false) {
            self.broken = true;
        }
        self.length = 0;
    }

    /// Writes to the file, which is made if `make`.
    fn append(&self, bytes: &[u8], make: bool) -> bool {
        let path = match self.file {
            Some(file) => return os::write_all(file, bytes),
            None if self.is_of_user => self.path.of_user(os::user_id(), self.process),
            None => self.path.of(self.process),
        };
        os::append_file(&path, bytes, make)
    }

    /// Adds a stack, and the modules that it leads through.
    pub(crate) fn put_stack(&mut self, stack: u32) {
        let slot = stack as usize % STACKS;
        if stack == 0 || self.stacks[slot] == stack {
            return;
        }
        self.stacks[slot] = stack;
        let frames = stacks::frames(Stack(stack));
        let mut words = [0; stacks::MAX_DEPTH];
        for (word, &pc) in words.iter_mut().zip(frames) {
            *word = pc as u64;
            self.put_module(pc);
        }
        if !frames.is_empty() {
            let frames = Frames::new(&words[..frames.len().min(stacks::MAX_DEPTH)]);
            self.put(&Entry::Stack(record::Stack { id: stack, frames }));
        }
    }

    /// Adds the module that an address is in.
    pub(crate) fn put_module(&mut self, address: usize) {
        // (A stack has a dozen frames, mostly in modules that were put: their names are not asked
        // for again.)
        let Some(Range { start, .. }) = stacks::module_range(address) else { return };
        let count = self.module_count;
        if self.modules[..count].contains(&start) {
            return;
        }
        let Some(module) = stacks::module_of(address) else { return };
        if let Some(place) = self.modules.get_mut(count) {
            *place = module.start;
            self.module_count += 1;
        }
        let page = module.start as u64 >> 12;
        self.put(&Entry::Module(record::Module {
            id: (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32,
            start: module.start as u64,
            end: module.end as u64,
            bias: module.bias as u64,
            build_id: module.build_id().into(),
            path: module.path().into(),
        }));
    }

    /// Adds a thread, with its number in the record, the kernel's, and its name, which ends before
    /// a zero.
    pub(crate) fn put_thread(&mut self, number: u32, tid: u32, name: &[u8]) {
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let name = record::Text::from(&name[..end]);
        self.put(&Entry::Thread(record::Thread { number, tid, name }));
    }

    /// Adds the map of memory, as it is at the first finding.
    pub(crate) fn put_map(&mut self) {
        if self.has_map {
            return;
        }
        self.has_map = true;
        let mut maps = [0; 2048];
        os::read_file(c"/proc/self/maps", &mut maps, |bytes| {
            self.put(&Entry::Map(record::Map { bytes: bytes.into() }));
            true
        });
    }
}
