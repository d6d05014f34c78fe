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
//! One `write` prints a finding. The buffer is not on the stack of the failing thread. Under the
//! reporter's lock no memory is allocated and no lock of the loader is taken. Reports name only
//! exported functions. `heapwright report` finds lines.
//!
//! Findings of one kind, at one place, about blocks of one site, count as the same, and are
//! reported once. After a hundred different findings, further ones are only counted.

use core::sync::atomic::compiler_fence;

use heapwright_record::debug::{
    self as record, Call, Ending, Entry, Finding, FindingKind, Region, Role, Words,
};
use heapwright_record::escaped;

use crate::digits::Digits;
use crate::options::debug::Config;
use crate::os;
use crate::recorder::Recorder;
use crate::stacks::{self, Module, Stack};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Guard, Lock};

use super::threads::Threads;

/// All heaps of the process share the record.
static RECORDER: Lock<Recorder> = Lock::new(Recorder::new());

const MOST_REPORTED: usize = 100;
const PAGE: usize = 24 << 10;

pub(crate) struct Reporter {
    quiet: AtomicBool,
    stops: AtomicBool,
    /// The findings that end the process: an [`Ends`] as a number.
    ends: AtomicU8,
    logs: AtomicBool,
    records: AtomicBool,
    began: AtomicU64,
    found: AtomicU32,
    state: Lock<State>,
}

/// The findings that end the process. An access to a guard ends the process by its fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    Never,
    /// A call with a pointer that is no block in use, as in fast mode.
    AtWrongPointers,
    Always,
}

struct State {
    /// For each of the first `reported_count` findings, its key and how often it was found.
    reported: [u64; MOST_REPORTED],
    times: [u64; MOST_REPORTED],
    reported_count: usize,
    last: Option<Finding>,
    has_hinted: bool,
    text: Text,
}

struct Text {
    bytes: [u8; PAGE],
    length: usize,
}

impl Text {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length < PAGE - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    fn name(&mut self, name: &[u8]) {
        escaped(name, |piece| self.text(piece));
    }

    fn hexadecimal(&mut self, number: u64) {
        self.bytes(Digits::hexadecimal(number).as_bytes());
    }

    fn begin(&mut self, process: u32) {
        self.length = 0;
        self.text("==");
        self.number(u64::from(process));
        self.text("==");
    }

    /// Adds a line for each frame of a stack. With `exact`, the first frame is no return address.
    fn stack(&mut self, stack: u32, exact: bool) {
        for (number, &pc) in stacks::frames(Stack(stack)).iter().enumerate() {
            self.text("    #");
            self.number(number as u64);
            self.text(" ");
            self.address(pc as u64);
            self.text(" in ");
            frame(self, pc, !(exact && number == 0));
            self.line();
        }
    }

    fn amount(&mut self, blocks: u64, bytes: u64) {
        self.number(bytes);
        self.text(if bytes == 1 { " byte in " } else { " bytes in " });
        self.number(blocks);
        self.text(if blocks == 1 { " block" } else { " blocks" });
    }

    fn hint(&mut self, has_hinted: &mut bool) {
        if !core::mem::replace(has_hinted, true) {
            self.text("    functions and lines: `heapwright check -- PROGRAM`, or `addr2line -Cfpie FILE 0xOFFSET` of (FILE+0xOFFSET)");
            self.line();
        }
    }

    fn emit(&self) {
        os::write_stderr(&self.bytes[..self.length]);
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

/// Returns the key of a finding. Findings of one mistake have the same key.
fn key(finding: &Finding) -> u64 {
    let parts = [
        finding.kind as u64,
        u64::from(finding.here.stack),
        u64::from(finding.allocated.stack),
        u64::from(finding.freed.stack),
        // Without stacks, the size and the place distinguish findings.
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
            ends: AtomicU8::new(Ends::Never as u8),
            logs: AtomicBool::new(false),
            records: AtomicBool::new(false),
            began: AtomicU64::new(0),
            found: AtomicU32::new(0),
            state: Lock::new(State {
                reported: [0; MOST_REPORTED],
                times: [0; MOST_REPORTED],
                reported_count: 0,
                last: None,
                has_hinted: false,
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

    pub(crate) fn end_at(&self, ends: Ends) {
        self.ends.store(ends as u8, Ordering::Relaxed);
    }

    fn ends_at(&self, finding: &Finding) -> bool {
        let ends = self.ends.load(Ordering::Relaxed);
        self.stops.load(Ordering::Relaxed)
            || !finding.is_access()
                && (ends == Ends::Always as u8
                    || ends == Ends::AtWrongPointers as u8
                        && matches!(
                            finding.kind,
                            FindingKind::DoubleFree
                                | FindingKind::InteriorFree
                                | FindingKind::InvalidFree
                                | FindingKind::InvalidRealloc
                                | FindingKind::ReallocAfterFree
                                | FindingKind::UseAfterFree
                        ))
    }

    pub(crate) fn record_to(&self, prefix: &[u8]) {
        RECORDER.lock().begin(prefix);
        self.records.store(true, Ordering::Relaxed);
    }

    pub(in crate::debug) fn recorder(&self) -> Option<Guard<'static, Recorder>> {
        self.records.load(Ordering::Relaxed).then(|| RECORDER.lock_soon())?
    }

    /// Begins the record if necessary, and returns it, if this heap has one and the lock is free.
    pub(in crate::debug) fn begun_recorder(&self) -> Option<Guard<'static, Recorder>> {
        let mut recorder = self.recorder()?;
        recorder.begins().then_some(recorder)
    }

    /// Locks the parts of a report, for a leak check.
    pub(in crate::debug) fn hold(&self) -> Option<Output<'_>> {
        let state = self.state.lock_soon()?;
        Some(Output { state, recorder: self.recorder(), process: os::process_id() })
    }

    pub(in crate::debug) fn is_loud(&self) -> bool {
        !self.quiet.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn logs(&self) -> bool {
        self.logs.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> u64 {
        os::now_ns().saturating_sub(self.began.load(Ordering::Relaxed))
    }

    pub(crate) fn found(&self) -> u32 {
        self.found.load(Ordering::Relaxed)
    }

    pub(crate) fn last(&self) -> Option<Finding> {
        self.state.lock().last
    }

    /// Returns whether the last finding is about this block, in a C function that `thread` called.
    #[cfg_attr(any(test, feature = "observe"), allow(dead_code, reason = "tests observe faults"))]
    pub(crate) fn has_told(&self, block: u64, thread: u32) -> bool {
        let state = self.state.lock_soon();
        state.and_then(|state| state.last).is_some_and(|last| {
            last.call == Call::Function && last.block == block && last.here.thread == thread
        })
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn report(&self, finding: &Finding, threads: &Threads) {
        self.found.fetch_add(1, Ordering::Relaxed);
        let _scope = super::scope::note(finding, threads);
        #[cfg(feature = "symbols")]
        if self.is_loud() {
            super::symbols::note(_scope, finding);
        }
        // A fault may happen while the same thread reports another finding.
        let state = match finding.call {
            Call::Access | Call::Function => self.state.lock_soon(),
            _ => Some(self.state.lock()),
        };
        if let Some(mut state) = state {
            state.last = Some(*finding);
            let key = key(finding);
            let count = state.reported_count;
            if let Some(known) = state.reported[..count].iter().position(|&other| other == key) {
                state.times[known] += 1;
            } else if count < MOST_REPORTED {
                state.reported[count] = key;
                state.times[count] = 1;
                state.reported_count += 1;
                if self.is_loud() {
                    state.write(finding, threads);
                }
                if let Some(mut recorder) = self.begun_recorder() {
                    record(&mut recorder, finding, threads);
                }
            }
        }
        if self.ends_at(finding) {
            compiler_fence(Ordering::SeqCst);
            // A debugger stops here; without one the process ends.
            crate::sync::hold_all();
            os::abort();
        }
    }

    /// Notes a site whose blocks get guards in the next run.
    #[cold]
    pub(crate) fn record_site(&self, key: u64, last: FindingKind) {
        if let Some(mut recorder) = self.begun_recorder() {
            recorder.put(&Entry::Site(record::Site { key, odds: 1, last, hits: 1 }));
            recorder.flush();
        }
    }

    /// Prints and records the end of the process. `signal` is 0 at a normal exit.
    pub(crate) fn end(&self, signal: u32, made: u64, freed: u64, peak: u64) {
        let Some(mut state) = self.state.lock_soon() else { return };
        let found = self.found();
        if found as usize > state.reported_count && self.is_loud() {
            let reported = state.reported_count as u64;
            let text = &mut state.text;
            text.begin(os::process_id());
            text.text(" heapwright: ");
            text.number(u64::from(found));
            text.text(" findings in all, ");
            text.number(reported);
            text.text(" different ones reported");
            text.line();
            text.emit();
        }
        if let Some(mut recorder) = self.recorder()
            && recorder.has_begun()
        {
            for (finding, &times) in state.times[..state.reported_count].iter().enumerate() {
                if times > 1 {
                    recorder.put(&Entry::Times(record::Times { finding: finding as u32, times }));
                }
            }
            recorder.put(&Entry::End(record::End {
                findings: found,
                allocations: made,
                frees: freed,
                peak_live_bytes: peak,
                ending: if signal == 0 { Ending::Exit } else { Ending::Signal },
                signal,
            }));
            recorder.flush();
        }
    }

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
        text.emit();
    }

    pub(crate) fn forget(&self) {
        self.in_child();
        self.state.lock().last = None;
    }

    pub(crate) fn before_fork(&self) {
        self.state.acquire();
        if self.records.load(Ordering::Relaxed) {
            RECORDER.acquire();
        }
    }

    /// # Safety
    ///
    /// The call follows [`Reporter::before_fork`] in the forking thread or its copy.
    pub(crate) unsafe fn after_fork(&self) {
        if self.records.load(Ordering::Relaxed) {
            // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
            unsafe { RECORDER.release() };
        }
        // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
        unsafe { self.state.release() };
    }

    pub(crate) fn in_child(&self) {
        self.found.store(0, Ordering::Relaxed);
        // A signal handler that forks may have interrupted a report.
        let Some(mut state) = self.state.lock_soon() else { return };
        state.reported_count = 0;
        if let Some(mut recorder) = self.recorder() {
            recorder.in_child();
        }
    }
}

impl State {
    fn write(&mut self, finding: &Finding, threads: &Threads) {
        let text = &mut self.text;
        text.begin(os::process_id());
        text.text("ERROR: heapwright: ");
        text.text(finding.kind.word());
        text.text(": ");
        finding.sentence(text);
        whose(text, finding);
        text.line();
        for (role, moment) in finding.moments() {
            let (_, name) = threads.identity(moment.thread).unwrap_or((0, [0; 16]));
            let end = name.iter().position(|&b| b == 0).unwrap_or(16);
            let name = core::str::from_utf8(&name[..end]).unwrap_or("");
            text.text("    ");
            finding.title(role, name, text);
            text.line();
            let is_access = role == Role::Here && finding.call == Call::Access;
            text.stack(moment.stack, is_access);
        }
        text.hint(&mut self.has_hinted);
        text.emit();
    }
}

pub(in crate::debug) struct Output<'a> {
    state: Guard<'a, State>,
    recorder: Option<Guard<'static, Recorder>>,
    /// The process that is reported on. A copy of this process may write the output.
    process: u32,
}

/// The definitely lost blocks of one stack, and the blocks lost with them.
pub(in crate::debug) struct Lost {
    pub(in crate::debug) blocks: u64,
    pub(in crate::debug) bytes: u64,
    pub(in crate::debug) indirect_blocks: u64,
    pub(in crate::debug) indirect_bytes: u64,
    pub(in crate::debug) stack: u32,
}

impl Output<'_> {
    pub(in crate::debug) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    pub(in crate::debug) fn lost(&mut self, lost: &Lost) {
        let State { text, has_hinted, .. } = &mut *self.state;
        text.begin(self.process);
        text.text("ERROR: heapwright: leak: ");
        text.amount(lost.blocks, lost.bytes);
        text.text(if lost.blocks == 1 { " is" } else { " are" });
        text.text(" definitely lost");
        if lost.indirect_blocks > 0 {
            text.text(", and ");
            text.amount(lost.indirect_blocks, lost.indirect_bytes);
            text.text(" with it");
        }
        text.line();
        text.text("    allocated here:");
        text.line();
        text.stack(lost.stack, false);
        text.hint(has_hinted);
        text.emit();
    }

    /// Prints the sums of a check. `more` is the number of groups that were not printed.
    pub(in crate::debug) fn summary(&mut self, amounts: &[(u64, u64); 4], more: u64) {
        const WORDS: [&str; 4] =
            ["definitely lost: ", "indirectly lost: ", "possibly lost: ", "still reachable: "];
        let text = &mut self.state.text;
        text.begin(self.process);
        text.text(" heapwright: leak check: ");
        for (index, (&(blocks, bytes), word)) in amounts.iter().zip(WORDS).enumerate() {
            text.text(if index > 0 { ", " } else { "" });
            text.text(word);
            text.amount(blocks, bytes);
        }
        if more > 0 {
            text.text(" (");
            text.number(more);
            text.text(" more places that lose blocks)");
        }
        text.line();
        text.emit();
    }
}

fn record(recorder: &mut Recorder, finding: &Finding, threads: &Threads) {
    recorder.put_map();
    for (_, moment) in finding.moments() {
        threads.record(moment.thread, recorder);
        recorder.put_stack(moment.stack);
    }
    recorder.put(&Entry::Finding(*finding));
    recorder.flush();
}

/// Adds the file whose data or code a pointer leads to, or the pool of its object.
fn whose(text: &mut Text, finding: &Finding) {
    match finding.region {
        Region::Globals | Region::Code => {
            let pointer = finding.pointer as usize;
            let Some(module) = stacks::module_of(pointer).map(Module::located) else { return };
            place(text, &module, pointer);
        }
        Region::Pool => {
            let found = crate::describe(core::ptr::without_provenance(finding.pointer as usize));
            crate::names::Name::of(found.owner, |name| {
                text.text(" (pool `");
                text.name(name);
                text.text("`)");
            });
        }
        _ => {}
    }
}

fn place(text: &mut Text, module: &Module, address: usize) {
    text.text(" (");
    text.name(module.path());
    text.text("+0x");
    text.hexadecimal((address - module.bias) as u64);
    text.text(")");
}

/// Adds one frame: its exported function, its module and build.
fn frame(text: &mut Text, pc: usize, is_return: bool) {
    let at = if is_return { pc - 1 } else { pc };
    let named = stacks::symbol_of(at, |name, offset| {
        text.name(name);
        text.text("+0x");
        text.hexadecimal(offset as u64 + u64::from(is_return));
    });
    if !named {
        text.text("??");
    }
    let Some(module) = stacks::module_of(at).map(Module::located) else { return };
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
