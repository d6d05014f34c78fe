//! Reports: findings on standard error as they happen, and in the record file.
//!
//! ```text
//! ==PID==ERROR: heapwright: double-free: free of a 40-byte block that was freed before
//!     here, thread 1 (name):
//!     #0 0x55d0c0de in function+0x1c (/path/program+0x10de) (BuildId: abcdef)
//!     freed by thread 1, 3 operations earlier:
//!     ...
//! ```
//!
//! One `write` a finding, from a buffer that is not on the stack of whoever runs
//! into it; one lock, under which nothing is allocated and no lock of the loader's
//! is taken. Names are those of exported functions; `heapwright report` finds lines.
//!
//! A mistake in a loop is reported once: findings of one kind at one place about
//! blocks of one place are the same, and only counted. After a hundred different
//! ones the rest is counted, too.
//!
//! The record file (`record=PREFIX`) is `PREFIX.<pid>`, made with the first
//! finding, opened and closed for each: a program may close what it does not know.

use core::sync::atomic::compiler_fence;

use heapwright_record::debug::{
    self as record, Call, Encoder, Ending, Entry, Finding, FindingKind, Frames, Region, Role, Words,
};

use crate::options::debug::Config;
use crate::os;
use crate::stacks::{self, Module, Stack};
use crate::sync::Lock;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::text::Digits;

use super::threads::Threads;

/// Different findings that are told; the rest is only counted.
const TOLD: usize = 100;
/// Modules whose entry is in the record already.
const MODULES: usize = 256;
/// Longest report in bytes.
const PAGE: usize = 24 << 10;
const PATH: usize = 512;

/// Where a heap's findings go.
pub(crate) struct Reporter {
    quiet: AtomicBool,
    stops: AtomicBool,
    logs: AtomicBool,
    began: AtomicU64,
    found: AtomicU32,
    state: Lock<State>,
}

struct State {
    /// The keys of the findings that were told: the first `told_count`.
    told: [u64; TOLD],
    told_count: usize,
    last: Option<Finding>,
    path: [u8; PATH],
    /// The process whose record has its beginning; 0: none yet.
    begun_by: u32,
    broken: bool,
    modules: [usize; MODULES],
    module_count: usize,
    text: Text,
}

/// Text under construction. What does not fit is cut.
struct Text {
    bytes: [u8; PAGE],
    length: usize,
}

/// Where text for people goes; null: standard error.
static SINK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sends the text of findings elsewhere than to descriptor 2: to a copy of it that
/// survives a program that closes it.
pub(crate) fn write_with(sink: fn(&[u8])) {
    SINK.store(sink as *mut (), Ordering::Release);
}

/// Writes text for people.
pub(super) fn emit(bytes: &[u8]) {
    let sink = SINK.load(Ordering::Acquire);
    if sink.is_null() {
        return os::write_stderr(bytes);
    }
    // SAFETY: not null, so it is the function that was stored.
    let sink: fn(&[u8]) = unsafe { core::mem::transmute(sink) };
    sink(bytes);
}

impl Text {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length < PAGE - 1 {
                self.bytes[self.length] = if byte < b' ' && byte != b'\n' { b'?' } else { byte };
                self.length += 1;
            }
        }
    }

    fn hexadecimal(&mut self, number: u64) {
        self.bytes(Digits::hexadecimal(number).as_bytes());
    }

    fn line(&mut self) {
        if self.length < PAGE {
            self.bytes[self.length] = b'\n';
            self.length += 1;
        }
    }
}

impl Words for Text {
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.bytes(Digits::decimal(number).as_bytes());
    }

    fn address(&mut self, address: u64) {
        self.text("0x");
        self.hexadecimal(address);
    }
}

/// Findings that are one mistake have one key.
fn key(finding: &Finding) -> u64 {
    let parts = [
        finding.kind as u64,
        u64::from(finding.here.stack),
        u64::from(finding.allocated.stack),
        u64::from(finding.freed.stack),
        // Without stacks, the size and the place must tell.
        if finding.allocated.stack == 0 { finding.size << 32 ^ finding.offset as u64 } else { 0 },
        if finding.here.stack | finding.allocated.stack == 0 { finding.pointer } else { 0 },
    ];
    parts
        .iter()
        .fold(1, |hash, part| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
        | 1
}

impl Reporter {
    pub(crate) const fn new() -> Self {
        Self {
            quiet: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            logs: AtomicBool::new(false),
            began: AtomicU64::new(0),
            found: AtomicU32::new(0),
            state: Lock::new(State {
                told: [0; TOLD],
                told_count: 0,
                last: None,
                path: [0; PATH],
                begun_by: 0,
                broken: false,
                modules: [0; MODULES],
                module_count: 0,
                text: Text { bytes: [0; PAGE], length: 0 },
            }),
        }
    }

    pub(crate) fn begin(&self, config: &Config) {
        self.quiet.store(config.quiet, Ordering::Relaxed);
        self.stops.store(config.stop_first, Ordering::Relaxed);
        self.logs.store(config.log, Ordering::Relaxed);
        self.began.store(os::now_ns(), Ordering::Relaxed);
    }

    /// Writes findings to the file `prefix.<pid>`, too.
    pub(crate) fn record_to(&self, prefix: &[u8]) {
        let mut state = self.state.lock();
        state.path = [0; PATH];
        // From where the program is now: it may go elsewhere.
        let mut at = 0;
        if prefix.first() != Some(&b'/') {
            at = os::current_folder(&mut state.path[..PATH / 2]);
            state.path[at] = b'/';
            at += 1;
        }
        let length = prefix.len().min(PATH - 13 - at);
        state.path[at..at + length].copy_from_slice(&prefix[..length]);
    }

    /// Whether each operation is to be told.
    #[inline]
    pub(crate) fn logs(&self) -> bool {
        self.logs.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the heap began.
    pub(crate) fn now(&self) -> u64 {
        os::now_ns().saturating_sub(self.began.load(Ordering::Relaxed))
    }

    /// How many findings there were, all of them.
    pub(crate) fn found(&self) -> u32 {
        self.found.load(Ordering::Relaxed)
    }

    /// The last finding.
    pub(crate) fn last(&self) -> Option<Finding> {
        self.state.lock().last
    }

    /// Tells of a finding.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(&self, finding: &Finding, threads: &Threads) {
        self.found.fetch_add(1, Ordering::Relaxed);
        super::scope::note(finding, threads);
        // A fault may come while its own thread reports something else.
        let state = match finding.call {
            Call::Access => self.state.lock_soon(super::heap::PATIENCE),
            _ => Some(self.state.lock()),
        };
        if let Some(mut state) = state {
            state.last = Some(*finding);
            let key = key(finding);
            let count = state.told_count;
            let is_new = !state.told[..count].contains(&key);
            if is_new && let Some(place) = state.told.get_mut(count) {
                *place = key;
                state.told_count += 1;
                state.write(finding, threads, !self.quiet.load(Ordering::Relaxed));
            }
        }
        if self.stops.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
            // A debugger stops here; without one, the process ends.
            crate::sync::hold_all();
            os::abort();
        }
    }

    /// Notes a place in the record that deserves guards in the next run, too.
    #[cold]
    pub(crate) fn record_site(&self, key: u64, last: FindingKind) {
        let mut state = self.state.lock();
        if state.path[0] != 0 && state.begins() {
            state.append(&[Entry::Site(record::Site { key, odds: 1, last, hits: 1 })]);
        }
    }

    /// Says how it ended, where something was found or a record is kept.
    pub(crate) fn end(&self, ending: Ending, made: u64, freed: u64, peak: u64) {
        let Some(mut state) = self.state.lock_soon(super::heap::PATIENCE) else { return };
        let found = self.found();
        if found as usize > state.told_count && !self.quiet.load(Ordering::Relaxed) {
            let told = state.told_count as u64;
            let text = &mut state.text;
            text.length = 0;
            text.text("==");
            text.number(u64::from(os::process_id()));
            text.text("== heapwright: ");
            text.number(u64::from(found));
            text.text(" findings in all, ");
            text.number(told);
            text.text(" different ones told");
            text.line();
            emit(&text.bytes[..text.length]);
        }
        if state.begun_by == os::process_id() {
            let end = record::End {
                findings: found,
                allocations: made,
                frees: freed,
                peak_live_bytes: peak,
                ending,
            };
            state.append(&[Entry::End(end)]);
        }
    }

    /// A line for an operation.
    pub(crate) fn log(&self, call: Call, block: usize, size: usize, stack: u32) {
        let mut state = self.state.lock();
        let text = &mut state.text;
        text.length = 0;
        text.text("heapwright: ");
        text.text(call.word());
        text.text(" ");
        text.address(block as u64);
        if size > 0 {
            text.text(", ");
            text.number(size as u64);
            text.text(" bytes");
        }
        if let Some(&pc) = stacks::frames(Stack(stack)).first() {
            text.text(", called at ");
            frame(text, pc, true);
        }
        text.line();
        emit(&text.bytes[..text.length]);
    }

    /// The heap ended: the next one of this id begins anew.
    pub(crate) fn forget(&self) {
        self.in_child();
        self.state.lock().last = None;
    }

    pub(crate) fn before_fork(&self) {
        self.state.acquire();
    }

    /// # Safety
    ///
    /// Follows [`Reporter::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        // SAFETY: the same contract.
        unsafe { self.state.release() };
    }

    /// The child has findings and a record of its own.
    pub(crate) fn in_child(&self) {
        self.found.store(0, Ordering::Relaxed);
        // A signal handler that forks may have interrupted a report.
        let Some(mut state) = self.state.lock_soon(super::heap::PATIENCE) else { return };
        state.begun_by = 0;
        state.module_count = 0;
        state.told_count = 0;
    }
}

impl State {
    fn write(&mut self, finding: &Finding, threads: &Threads, aloud: bool) {
        if aloud {
            let text = &mut self.text;
            text.length = 0;
            text.text("==");
            text.number(u64::from(os::process_id()));
            text.text("==ERROR: heapwright: ");
            text.text(finding.kind.word());
            text.text(": ");
            finding.sentence(text);
            whose(text, finding);
            text.line();
            for (role, moment) in finding.moments() {
                let (_, name) = threads.who(moment.thread).unwrap_or((0, [0; 16]));
                let end = name.iter().position(|&b| b == 0).unwrap_or(16);
                let name = core::str::from_utf8(&name[..end]).unwrap_or("");
                text.text("    ");
                finding.title(role, name, text);
                text.line();
                let is_access = role == Role::Here && finding.call == Call::Access;
                for (number, &pc) in stacks::frames(Stack(moment.stack)).iter().enumerate() {
                    text.text("    #");
                    text.number(number as u64);
                    text.text(" ");
                    text.address(pc as u64);
                    text.text(" in ");
                    frame(text, pc, !(is_access && number == 0));
                    text.line();
                }
            }
            emit(&text.bytes[..text.length]);
        }
        if self.path[0] != 0 && !self.broken {
            self.record(finding, threads);
        }
    }

    /// Makes the record, if this process has none yet. False: it cannot be had.
    fn begins(&mut self) -> bool {
        let process = os::process_id();
        if self.begun_by != process && !self.broken {
            self.module_count = 0;
            if self.begin_record(process) {
                self.begun_by = process;
            }
        }
        !self.broken
    }

    /// Writes a finding and what it speaks of to the record.
    fn record(&mut self, finding: &Finding, threads: &Threads) {
        if !self.begins() {
            return;
        }
        for (_, moment) in finding.moments() {
            if let Some((tid, name)) = threads.who(moment.thread) {
                let end = name.iter().position(|&b| b == 0).unwrap_or(16);
                let name = record::Text::from(&name[..end]);
                self.append(&[Entry::Thread(record::Thread { number: moment.thread, tid, name })]);
            }
            let frames = stacks::frames(Stack(moment.stack));
            let mut words = [0; stacks::MAX_DEPTH];
            for (word, &pc) in words.iter_mut().zip(frames) {
                *word = pc as u64;
                self.record_module(pc);
            }
            if !frames.is_empty() {
                let frames = Frames::new(&words[..frames.len().min(stacks::MAX_DEPTH)]);
                self.append(&[Entry::Stack(record::Stack { id: moment.stack, frames })]);
            }
        }
        self.append(&[Entry::Finding(*finding)]);
    }

    fn record_module(&mut self, pc: usize) {
        let Some(module) = stacks::module_of(pc) else { return };
        let count = self.module_count;
        if self.modules[..count].contains(&module.start) {
            return;
        }
        if let Some(place) = self.modules.get_mut(count) {
            *place = module.start;
            self.module_count += 1;
        }
        self.append(&[Entry::Module(record::Module {
            id: count as u32 + 1,
            start: module.start as u64,
            end: module.end as u64,
            bias: module.bias as u64,
            build_id: module.build_id().into(),
            path: module.path().into(),
        })]);
    }

    /// Makes the file, and says in it whose it is.
    fn begin_record(&mut self, process: u32) -> bool {
        let mut path = [0; PATH];
        self.path_of(process, &mut path);
        if !os::append_file(&path, &record::HEADER, true) {
            self.broken = true;
            let line = crate::text::Line::new().text("cannot make the record file \"");
            let end = path.iter().position(|&b| b == 0).unwrap_or(0);
            line.bytes(&path[..end]).text("\": look at the folder of option record").write();
            return false;
        }
        let mut exe = [0; PATH];
        let exe_length = os::program_path(&mut exe);
        let mut command = [0; 1024];
        let mut command_length = 0;
        let mut buffer = [0; 256];
        os::read_file(c"/proc/self/cmdline", &mut buffer, |bytes| {
            let room = bytes.len().min(command.len() - command_length);
            command[command_length..command_length + room].copy_from_slice(&bytes[..room]);
            command_length += room;
            room == bytes.len()
        });
        let mut options = [0; 512];
        let options_length = os::environment(b"HEAPWRIGHT", &mut options).unwrap_or(0).min(512);
        self.append(&[Entry::Process(record::Process {
            pid: process,
            parent: os::parent_id(),
            time: os::unix_ns(),
            page_size: os::kernel_page_size() as u32,
            version: env!("CARGO_PKG_VERSION").into(),
            exe: exe[..exe_length.min(PATH)].into(),
            options: options[..options_length].into(),
            command: command[..command_length].into(),
        })]);
        let mut maps = [0; 2048];
        os::read_file(c"/proc/self/maps", &mut maps, |bytes| {
            self.append(&[Entry::Map(record::Map { bytes: bytes.into() })]);
            true
        });
        true
    }

    fn path_of(&self, process: u32, path: &mut [u8; PATH]) {
        let end = self.path.iter().position(|&b| b == 0).unwrap_or(0);
        path[..end].copy_from_slice(&self.path[..end]);
        path[end] = b'.';
        let digits = Digits::decimal(u64::from(process));
        let digits = digits.as_bytes();
        path[end + 1..end + 1 + digits.len()].copy_from_slice(digits);
    }

    fn append(&mut self, entries: &[Entry<'_>]) {
        let mut path = [0; PATH];
        self.path_of(os::process_id(), &mut path);
        for entry in entries {
            let mut buffer = [0; 4096];
            let mut encoder = Encoder::new(&mut buffer);
            // A write that came out short must not be followed by another.
            if !self.broken && !os::append_file(&path, encoder.entry(entry), false) {
                self.broken = true;
            }
        }
    }
}

/// Which file's data or code a pointer leads to, or which pool's object.
fn whose(text: &mut Text, finding: &Finding) {
    match finding.region {
        Region::Globals | Region::Code => {
            let pointer = finding.pointer as usize;
            let Some(module) = stacks::module_of(pointer) else { return };
            place(text, &module, pointer);
        }
        Region::Pool => {
            let found = crate::describe(core::ptr::without_provenance(finding.pointer as usize));
            crate::names::Name::of(found.owner, |name| {
                text.text(" (pool `");
                text.bytes(name);
                text.text("`)");
            });
        }
        _ => {}
    }
}

/// Where in its module's file an address is.
fn place(text: &mut Text, module: &Module, address: usize) {
    text.text(" (");
    text.bytes(module.path());
    text.text("+0x");
    text.hexadecimal((address - module.bias) as u64);
    text.text(")");
}

/// One frame: its function as far as exported names tell, its module and build.
fn frame(text: &mut Text, pc: usize, is_return: bool) {
    let at = if is_return { pc - 1 } else { pc };
    let named = stacks::symbol_of(at, |name, offset| {
        text.bytes(name);
        text.text("+0x");
        text.hexadecimal(offset as u64 + u64::from(is_return));
    });
    if !named {
        text.text("??");
    }
    let Some(module) = stacks::module_of(at) else { return };
    place(text, &module, pc);
    if !module.build_id().is_empty() {
        text.text(" (BuildId: ");
        for &byte in module.build_id() {
            text.hexadecimal(u64::from(byte >> 4));
            text.hexadecimal(u64::from(byte & 15));
        }
        text.text(")");
    }
}
