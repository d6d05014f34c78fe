//! The record file, which the command reads after the process has ended.
//!
//! ```text
//!   put(entry)  put_stack  put_thread          flush()
//!     |  encoded, one behind the other            |  one write
//!     v                                           v
//!   | entry | entry | ......... pending  |  -->  PREFIX.<pid>
//! ```
//! The file is made at the process's start (in a forked child, with the first entry). It is opened
//! and closed for each write, because a program may close unknown files. Entries that belong
//! together are one write, so a process that dies leaves all or none of them. A copy of the process
//! (`leaks`) may write, too. After `exec` the new program continues the file.
//!
//! A process can lose the file by a change of its user, a `chroot`, a full disk, or a deletion.
//! Then the record continues in the run's shared memory (`spill`). The first write there repeats
//! the beginning, the stacks and the findings, for a command that finds no file. A module's number
//! derives from its address, so two concurrent writers give it the same number.
//!
//! A user of a recorder must hold its lock. Called by `debug` and `samples`.

use core::ops::Range;

use heapwright_record::debug::{self as record, Encoder, Entry, Finding, Frames, HEADER};
use heapwright_record::spill::Kind;

use crate::files::{self, PATH, Prefix};
use crate::os::{self, NotAppended};
use crate::spill;
use crate::stacks::{self, Module, Stack};
use crate::sync::atomic::{AtomicU32, Ordering};

const MODULES: usize = 256;
/// Stacks known to be in the record, by the low bits of their numbers. Some are written twice.
const STACKS: usize = 2048;
const PENDING: usize = 32 << 10;
const FINDINGS: usize = 100;

/// The last process that began a record in this memory, or 0. A child that borrows or copies the
/// memory adds its notes to that record.
static OWNER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Recorder {
    /// The file's name without the process's id. Empty if no file is wanted.
    path: Prefix,
    /// Whether the file is in the folder for a root process's new user.
    is_of_user: bool,
    file: Option<i32>,
    /// Whether the record continues in the spill, and whether entries are repetitions.
    spills: bool,
    repeats: bool,
    /// The start of the process in nanoseconds since 1970. If 0, the start of its record counts.
    began: u64,
    process: u32,
    broken: bool,
    has_map: bool,
    modules: [usize; MODULES],
    module_count: usize,
    stacks: [u32; STACKS],
    findings: [Finding; FINDINGS],
    finding_count: usize,
    findings_written: usize,
    pending: [u8; PENDING],
    length: usize,
}

impl Recorder {
    /// All zeros, which take no room in the library's file.
    pub(crate) const fn new() -> Self {
        Self {
            path: Prefix::none(),
            is_of_user: false,
            file: None,
            spills: false,
            repeats: false,
            began: 0,
            process: 0,
            broken: false,
            has_map: false,
            modules: [0; MODULES],
            module_count: 0,
            stacks: [0; STACKS],
            findings: [Finding::UNKNOWN; FINDINGS],
            finding_count: 0,
            findings_written: 0,
            pending: [0; PENDING],
            length: 0,
        }
    }

    pub(crate) fn begin(&mut self, prefix: &[u8]) {
        self.path.set(prefix);
    }

    pub(crate) fn begin_in(&mut self, file: i32) {
        self.file = Some(file);
        self.process = 0;
        self.broken = false;
    }

    pub(crate) fn set_beginning(&mut self, began: u64) {
        self.began = began;
    }

    pub(crate) fn in_child(&mut self) {
        self.process = 0;
        self.length = 0;
    }

    pub(crate) fn is_wanted(&self) -> bool {
        (self.path.is_given() || self.file.is_some()) && !self.broken
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.process == os::process_id()
    }

    /// Begins the record, if one is wanted and this process has none. Returns whether it has one.
    pub(crate) fn begins(&mut self) -> bool {
        if self.is_wanted() && !self.has_begun() {
            self.process = os::process_id();
            self.module_count = 0;
            self.has_map = false;
            self.stacks = [0; STACKS];
            (self.finding_count, self.findings_written) = (0, 0);
            self.length = 0;
            self.write_beginning();
        }
        self.is_wanted()
    }

    fn write_beginning(&mut self) {
        (self.is_of_user, self.spills) = (false, false);
        let mut is_made = self.append(&HEADER, true).is_ok();
        if !is_made && self.file.is_none() {
            self.is_of_user = true;
            is_made = self.append(&HEADER, true).is_ok();
            // The command adds the header.
            self.spills = !is_made;
            is_made |= spill::append(self.process, &[], Kind::Next);
        }
        if !is_made {
            self.broken = true;
            if self.file.is_some() {
                return;
            }
            let path = self.path.of(self.process);
            let line = crate::text::Line::new().text("cannot make the record file \"");
            line.bytes(files::shown(&path)).text("\": look at its folder").write();
            return;
        }
        OWNER.store(self.process, Ordering::Relaxed);
        self.put_process();
        // Later the path of the program's file may be out of reach.
        self.put_module(os::program_headers().as_ptr().addr());
        self.flush();
    }

    fn put_process(&mut self) {
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
    }

    pub(crate) fn put(&mut self, entry: &Entry<'_>) {
        if let Entry::Finding(finding) = entry
            && !self.repeats
            && let Some(place) = self.findings.get_mut(self.finding_count)
        {
            *place = *finding;
            self.finding_count += 1;
        }
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

    /// Writes the pending entries. After a failure nothing more is written.
    pub(crate) fn flush(&mut self) {
        let bytes = &self.pending[..self.length];
        let mut moved = None;
        if !bytes.is_empty() && !self.broken {
            let mut written = self.append(bytes, false);
            if let Err(why) = written
                && !self.spills
                && self.file.is_none()
            {
                (self.spills, moved) = (true, Some(why));
                written = self.append(bytes, false);
            }
            self.broken = written.is_err();
        }
        self.length = 0;
        if moved.is_none() {
            self.findings_written = self.finding_count;
        }
        if let Some(why) = moved
            && !self.broken
        {
            self.repeat(why);
        }
    }

    /// Repeats the file's stacks and findings in the spill. Adds a note if the disk is full.
    #[cold]
    fn repeat(&mut self, why: NotAppended) {
        self.repeats = true;
        self.module_count = 0;
        self.put_process();
        for slot in 0..STACKS {
            let stack = core::mem::take(&mut self.stacks[slot]);
            self.put_stack(stack);
        }
        for finding in 0..self.findings_written {
            self.put(&Entry::Finding(self.findings[finding]));
        }
        self.flush();
        self.repeats = false;
        if why == NotAppended::Full {
            let text = "the disk of its record is full, or the process may write no larger file \
                        (RLIMIT_FSIZE): the record continues in memory";
            self.put(&Entry::Note(record::Note { bytes: text.into() }));
            self.flush();
        }
    }

    fn append(&self, bytes: &[u8], make: bool) -> Result<(), NotAppended> {
        let path = match self.file {
            Some(file) if os::write_all(file, bytes) => return Ok(()),
            Some(_) => return Err(NotAppended::Closed),
            None if self.spills => {
                let kind = if self.repeats { Kind::Again } else { Kind::Next };
                let spilled = spill::append(self.process, bytes, kind);
                return spilled.then_some(()).ok_or(NotAppended::Full);
            }
            None if self.is_of_user => self.path.of_user(os::user_id(), self.process),
            None => self.path.of(self.process),
        };
        os::append_whole(&path, bytes, make)
    }

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

    pub(crate) fn put_module(&mut self, address: usize) {
        // The names of modules that were added before are not read again.
        let Some(Range { start, .. }) = stacks::module_range(address) else { return };
        let count = self.module_count;
        if self.modules[..count].contains(&start) {
            return;
        }
        let Some(module) = stacks::module_of(address).map(Module::located) else { return };
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

    /// Adds a thread: its number in the record, the kernel's number, and its name.
    pub(crate) fn put_thread(&mut self, number: u32, tid: u32, name: &[u8]) {
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        let name = record::Text::from(&name[..end]);
        self.put(&Entry::Thread(record::Thread { number, tid, name }));
    }

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

/// Adds a note to the record of [`OWNER`]. Takes no lock: a child of `vfork` may call this.
pub(crate) fn note(path: &Prefix, text: &[u8]) {
    let owner = OWNER.load(Ordering::Relaxed);
    if owner == 0 {
        return;
    }
    let mut buffer = [0; Encoder::SMALLEST];
    let mut encoder = Encoder::new(&mut buffer);
    let bytes = encoder.entry(&Entry::Note(record::Note { bytes: text.into() }));
    let _written = os::append_file(&path.of(owner), bytes, false)
        || os::append_file(&path.of_user(os::user_id(), owner), bytes, false)
        || spill::append(owner, bytes, Kind::Next);
}
