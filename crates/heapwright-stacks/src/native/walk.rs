//! The walk: from a frame to its caller's, until there are enough frames.
//!
//! ```text
//!   pc --> rule (cache; tables at the first sight of an address)
//!   CFA = (fp or sp) + offset        pc' = [CFA + a]    fp' = [CFA + b] or fp    sp' = CFA
//! ```
//!
//! A step through known code loads the rule and then the return address, without a branch that
//! depends on the kind of frame. For a *plain* rule, selects pick the base and the frame pointer.
//! All other cases (`odd_step`) are rare.
//!
//! If a call is the last instruction of a function, its return address is the first address of
//! another function. So rules are looked up for the address before a return address. A frame that a
//! signal interrupted has no call. The walk looks up its address unchanged, and *keeps* the address
//! plus one, so that code that names frames may always subtract one. (Only the first frame of
//! [`of_context`] is kept as it is.)
//!
//! # The end of a walk
//!
//! A walk ends after `depth` frames, at the outermost frame that the tables name, and at:
//!
//! - an address that cannot be code, or an unreadable word (`bounds`);
//! - a CFA that is not above the last CFA (equal, in a leaf function with a link register);
//! - tables that do not fit a rule, or the ninth signal frame.
//!
//! A walk passes code without tables by its frame pointer. The pointer must lead upward to two
//! readable words, and the second must look like an address. A damaged stack gives at worst a short
//! result. During a walk, neither another thread nor a signal handler uses the scratch.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::hint::select_unpredictable;
use core::mem::MaybeUninit;
use core::ptr;

use super::super::depot::{DEPOT, HASH_START, hash_end, hash_step};
use super::super::rule::{Base, Cfa, Frame, Return, Rule};
use super::super::tables::{self, Context};
use super::super::{Counts, MAX_DEPTH, Stack};
use super::bounds::{Own, Reader};
use super::cache::{self, Cache};
use super::image;
use super::machine::{
    NUMBERS, SAVED_FP, SAVED_LINK, SAVED_PC, SAVED_SP, SIGRETURN, UCONTEXT, bare,
};
use super::memo::{Memo, Noted, Slots};
use super::shared::{self, Known};
use heapwright_substrate::os;
use heapwright_substrate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

#[derive(Clone, Copy)]
pub(in super::super) struct Registers {
    pub(super) pc: usize,
    pub(super) sp: usize,
    pub(super) fp: usize,
    /// The link register, or 0 if there is none or it does not matter.
    pub(super) link: usize,
}

/// The most frames of our own at the top of a stack.
const MOST_LEFT_OUT: usize = 192;
/// The most signal frames on one stack.
const MAX_SIGNALS: usize = 8;

/// A thread's own memory for captures. Zeroed memory is a valid value.
pub struct Scratch {
    own: Own,
    counts: Counts,
    memo: Memo,
    frames: [usize; MAX_DEPTH],
    slots: Slots,
    /// The module of the last learnt rule.
    module: Known,
    /// Whether `context` is filled in.
    has_context: bool,
    context: MaybeUninit<Context>,
}

const _: () = assert!(size_of::<Scratch>() <= 24 << 10);

impl Scratch {
    /// Creates an unused scratch, equal to zeroed memory.
    pub const fn new() -> Self {
        Self {
            own: Own::new(),
            counts: Counts::ZERO,
            memo: Memo::new(),
            frames: [0; MAX_DEPTH],
            slots: Slots::new(),
            module: Known::NONE,
            has_context: false,
            context: MaybeUninit::zeroed(),
        }
    }

    /// Returns the counts of this scratch, and the process's stacks in the depot.
    pub fn counts(&self) -> Counts {
        Counts { stacks: DEPOT.count() as u64, bytes: DEPOT.used_bytes() as u64, ..self.counts }
    }
}

/// Making a context takes 5 KiB of the stack, and copying it takes none.
struct NewContext {
    /// 0 if there is no context, 1 if a thread is making it, 2 if it is complete.
    state: AtomicU8,
    context: UnsafeCell<MaybeUninit<Context>>,
}

// SAFETY: only the thread that sets the state to 1 writes the context. From state 2 on, threads
// only read the context.
unsafe impl Sync for NewContext {}

static NEW_CONTEXT: NewContext =
    NewContext { state: AtomicU8::new(0), context: UnsafeCell::new(MaybeUninit::zeroed()) };

impl NewContext {
    fn copy_to(&self, place: &mut MaybeUninit<Context>) {
        if self.state.load(Ordering::Acquire) != 2 {
            return self.make(place);
        }
        // SAFETY: the context is complete, and consists of numbers and arrays of them: a copy
        // shares nothing.
        unsafe { ptr::copy_nonoverlapping(self.context.get(), place, 1) };
    }

    #[cold]
    #[inline(never)]
    fn prepare(&self) {
        let mut unused = MaybeUninit::zeroed();
        self.make(&mut unused);
    }

    #[cold]
    #[inline(never)]
    fn make(&self, place: &mut MaybeUninit<Context>) {
        place.write(Context::new_in());
        if self.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // SAFETY: this thread alone set the state to 1; a context is numbers and arrays of
            // them.
            unsafe { ptr::copy_nonoverlapping(place, self.context.get(), 1) };
            self.state.store(2, Ordering::Release);
        }
    }
}

pub(in super::super) fn prepare() {
    NEW_CONTEXT.prepare();
}

/// Whether no rule is learnt on a stack that is not the thread's own.
static SPARES_FOREIGN_STACKS: AtomicBool = AtomicBool::new(false);

/// See the crate's `spare_foreign_stacks`.
pub(in super::super) fn spare_foreign_stacks() {
    SPARES_FOREIGN_STACKS.store(true, Ordering::Relaxed);
}

#[inline(never)]
pub(in super::super) fn capture(scratch: &mut Scratch, depth: usize, start: &Registers) -> Stack {
    scratch.counts.captures += 1;
    let depth = depth.clamp(1, MAX_DEPTH);
    let end = scratch.own.end(start.sp);
    let generation = cache::generation();
    if let Some(end) = end
        && start.sp.is_multiple_of(8)
        && let Some(stack) = scratch.memo.find(start, depth, generation, end)
    {
        scratch.counts.memo_hits += 1;
        return stack;
    }
    walk(scratch, depth, start, false, end, generation)
}

/// Captures the stack at a signal. The first frame is the interrupted address itself.
///
/// # Safety
///
/// `context` is the third argument of a signal handler.
pub(in super::super) unsafe fn of_context(
    scratch: &mut Scratch,
    depth: usize,
    context: *const c_void,
) -> Stack {
    scratch.counts.captures += 1;
    let word = |offset: usize| {
        let at: *const usize = context.cast::<u8>().wrapping_add(offset).cast();
        // SAFETY: by the contract a ucontext is there, with its registers at these places.
        unsafe { at.read() }
    };
    let start = Registers {
        pc: word(SAVED_PC),
        sp: word(SAVED_SP),
        fp: word(SAVED_FP),
        link: word(SAVED_LINK),
    };
    let end = scratch.own.end(start.sp);
    let generation = cache::generation();
    walk(scratch, depth.clamp(1, MAX_DEPTH), &start, true, end, generation)
}

static OWN_START: AtomicUsize = AtomicUsize::new(0);
static OWN_SIZE: AtomicUsize = AtomicUsize::new(0);

/// Returns the addresses whose frames are left out at the top of a stack: our own code, if it is a
/// module of its own.
#[inline(always)]
fn own_code() -> (usize, usize) {
    // The tests are in the same module as the library.
    if !cfg!(feature = "interpose") || cfg!(test) {
        return (0, 0);
    }
    let size = OWN_SIZE.load(Ordering::Acquire);
    if size == 0 { find_own_code() } else { (OWN_START.load(Ordering::Relaxed), size) }
}

pub(in super::super) fn own_module() -> Option<core::ops::Range<usize>> {
    let image = image::image_of(own_module as fn() -> Option<core::ops::Range<usize>> as usize)?;
    // If another library contains the archive, the range would have that library's data, too.
    let is_ours = cfg!(feature = "interpose") && !cfg!(test) && image.is_named(b"libheapwright");
    is_ours.then_some(image.start..image.end)
}

#[cold]
#[inline(never)]
fn find_own_code() -> (usize, usize) {
    // If the code is not found, or is the program's own, the range is one byte at address 0.
    let found = image::image_of(find_own_code as fn() -> (usize, usize) as usize);
    let found = found.filter(|image| !image.is_program());
    let (start, size) = found.map_or((0, 1), |image| (image.start, image.end - image.start));
    OWN_START.store(start, Ordering::Relaxed);
    OWN_SIZE.store(size, Ordering::Release);
    (start, size)
}

#[derive(Clone, Copy)]
struct Position {
    now: Registers,
    /// Whether a signal interrupted the frame, so that its address is no return address.
    exact: bool,
    /// Whether the frame pointer is still the initial frame pointer.
    fp_original: bool,
    /// The place from which the frame pointer was loaded. 0 if none, or once a CFA was made of it.
    fp_place: usize,
    /// Whether the memo may keep the walk.
    keepable: bool,
    signals: usize,
}

impl Position {
    fn of(start: &Registers, exact: bool, end: Option<usize>) -> Self {
        let keepable = !exact && end.is_some();
        Self { now: *start, exact, fp_original: true, fp_place: 0, keepable, signals: 0 }
    }

    /// The address whose rule leads to the caller's frame.
    #[inline(always)]
    fn address(&self) -> usize {
        self.now.pc.wrapping_sub(usize::from(!self.exact))
    }
}

#[derive(Clone, Copy)]
struct Found {
    kept: usize,
    hash: u64,
    depth: usize,
    /// Frames in these addresses are left out, while they are at the top.
    own_start: usize,
    own_size: usize,
    /// The number of frames that may still be left out.
    left: usize,
}

impl Found {
    /// Keeps a frame, or leaves it out. Returns whether more frames are wanted.
    #[inline(always)]
    fn push(&mut self, frames: &mut [usize; MAX_DEPTH], frame: usize) -> bool {
        if frame.wrapping_sub(self.own_start) < self.own_size {
            self.left -= 1;
            return self.left > 0;
        }
        self.own_size = 0;
        let Some(place) = frames.get_mut(self.kept) else { return false };
        *place = frame;
        self.hash = hash_step(self.hash, frame);
        self.kept += 1;
        self.kept < self.depth
    }
}

#[inline(never)]
fn walk(
    scratch: &mut Scratch,
    depth: usize,
    start: &Registers,
    exact: bool,
    end: Option<usize>,
    generation: u32,
) -> Stack {
    let (own_start, own_size) = own_code();
    let cache = cache::open();
    let mut reader = Reader::new(start.sp, end);
    let mut at = Position::of(start, exact, end);
    let mut noted = Noted::NONE;
    let mut found =
        Found { kept: 0, hash: HASH_START, depth, own_start, own_size, left: MOST_LEFT_OUT };
    let mut goes_on = found.push(&mut scratch.frames, start.pc);
    while goes_on {
        let address = at.address();
        let mut rule = cache.map_or(Rule(0), |cache| cache.get(address));
        if rule == Rule(0) && end.is_none() && SPARES_FOREIGN_STACKS.load(Ordering::Relaxed) {
            break;
        }
        if rule == Rule(0) {
            let is_kept;
            (rule, is_kept) = learn(scratch, cache, address, generation);
            at.keepable &= is_kept;
        }
        if rule.is_plain()
            && let Some(cache) = cache
        {
            let ran = plain_steps(scratch, cache, &reader, rule, (at, noted, found));
            (at, noted, found) = ran.to;
            match ran.stop {
                Stop::End => break,
                Stop::Rule => continue,
                Stop::Word(plain) => rule = plain,
            }
        }
        goes_on = odd_step(scratch, &mut reader, &mut at, &mut noted, rule).is_some() && {
            let one = usize::from(at.exact && found.kept > 0);
            found.push(&mut scratch.frames, at.now.pc + one)
        };
    }
    let Found { kept, hash, .. } = found;
    if kept == 0 {
        return Stack::NONE;
    }
    let inserted = DEPOT.insert(&scratch.frames[..kept], hash_end(hash));
    scratch.counts.depot_hits += u64::from(inserted.known);
    if at.keepable && !reader.tried && inserted.stack != Stack::NONE {
        scratch.memo.keep(start, depth, generation, (&scratch.slots, noted), inserted.stack);
    }
    inserted.stack
}

/// Passes return addresses outside our own module to `is`, innermost first, until it accepts one.
/// Returns the stack pointer of the accepted function's caller.
#[cold]
pub(in super::super) fn above(
    scratch: &mut Scratch,
    start: &Registers,
    mut is: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let (own_start, own_size) = own_code();
    let (generation, end) = (cache::generation(), scratch.own.end(start.sp));
    let cache = cache::open();
    let mut reader = Reader::new(start.sp, end);
    let mut at = Position::of(start, false, end);
    let (mut noted, mut was) = (Noted::NONE, false);
    for _ in 0..MOST_LEFT_OUT + MAX_DEPTH {
        let address = at.address();
        let mut rule = cache.map_or(Rule(0), |cache| cache.get(address));
        if rule == Rule(0) {
            rule = learn(scratch, cache, address, generation).0;
        }
        odd_step(scratch, &mut reader, &mut at, &mut noted, rule)?;
        if was {
            return Some(at.now.sp);
        }
        was = at.now.pc.wrapping_sub(own_start) >= own_size && is(at.now.pc);
    }
    None
}

enum Stop {
    /// The walk is at its end.
    End,
    /// The next rule is not plain, or not known.
    Rule,
    /// This rule reads words that may be unreadable.
    Word(Rule),
}

struct Ran {
    to: (Position, Noted, Found),
    stop: Stop,
}

/// Follows plain steps, the first by `rule`, while there are any.
///
/// This function calls nothing rare, and each changing value is a local. So the values stay in
/// registers, and a step waits only for the loads of the step before.
#[inline(always)]
fn plain_steps(
    scratch: &mut Scratch,
    cache: Cache,
    reader: &Reader,
    mut rule: Rule,
    (at, noted, found): (Position, Noted, Found),
) -> Ran {
    let Registers { mut pc, mut sp, mut fp, .. } = at.now;
    let Position { mut fp_place, mut fp_original, mut exact, .. } = at;
    let Noted { mut count, mut fp_matters } = noted;
    let mut found = found;
    let (low, span) = reader.without_trying();
    let (frames, slots) = (&mut scratch.frames, &mut scratch.slots);
    let stop = loop {
        let by_fp = rule.starts_from_fp();
        let base = select_unpredictable(by_fp, fp, sp);
        let cfa = base.wrapping_add_signed(rule.cfa_offset());
        let return_place = cfa.wrapping_add_signed(rule.return_offset());
        let saved_place = cfa.wrapping_add_signed(rule.fp_offset());
        // The initial frame pointer matters if a CFA is made of it, even if that CFA is refused.
        fp_matters |= by_fp & fp_original;
        if cfa <= sp || !cfa.is_multiple_of(8) {
            count = slots.note(count, fp_place, fp, by_fp & (fp_place != 0));
            break Stop::End;
        }
        if return_place.wrapping_sub(low) > span || saved_place.wrapping_sub(low) > span {
            break Stop::Word(rule);
        }
        // SAFETY: the place is on the thread's own stack, and aligned, because the CFA is aligned
        // and its offsets are in words.
        let word = unsafe { super::bounds::word_at(return_place) };
        // SAFETY: the place is on the thread's own stack, and aligned, because the CFA is aligned
        // and its offsets are in words.
        let saved = unsafe { super::bounds::word_at(saved_place) };
        let fp_counts = by_fp & (fp_place != 0);
        count = slots.note_two(count, (fp_place, fp, fp_counts), (return_place, word));
        let has_saved = rule.has_saved_fp();
        let unused = select_unpredictable(by_fp, 0, fp_place);
        fp_place = select_unpredictable(has_saved, saved_place, unused);
        fp_original &= !has_saved;
        fp = select_unpredictable(has_saved, saved, fp);
        sp = cfa;
        pc = bare(word);
        exact = false;
        if !is_address(pc) || !found.push(frames, pc) {
            break Stop::End;
        }
        rule = cache.get(pc.wrapping_sub(1));
        if !rule.is_plain() {
            break Stop::Rule;
        }
    };
    let now = Registers { pc, sp, fp, link: if exact { at.now.link } else { 0 } };
    let at = Position { now, exact, fp_place, fp_original, ..at };
    Ran { to: (at, Noted { count, fp_matters }, found), stop }
}

/// Returns the rule of an address that the cache lacks, and whether the rule is permanent.
#[cold]
#[inline(never)]
fn learn(
    scratch: &mut Scratch,
    cache: Option<Cache>,
    address: usize,
    generation: u32,
) -> (Rule, bool) {
    if let Some(cache) = cache {
        let rule = cache.get_from_smaller(address);
        if rule != Rule(0) {
            cache.put(address, rule, generation);
            return (rule, true);
        }
    }
    scratch.counts.rule_misses += 1;
    if let Some(rule) = learnt_by_others(scratch, address, generation) {
        if let Some(cache) = cache {
            cache.put(address, rule, generation);
        }
        return (rule, true);
    }
    let Some(image) = image::image_of(address) else {
        // Code in no module may be other code the next time.
        let is_trampoline = SIGRETURN.is_some_and(|code| is_at(address.wrapping_add(1), code));
        let rule = if is_trampoline { Rule::SIGNAL } else { Rule::BY_FRAME_POINTER };
        return (rule, false);
    };
    // (The module may be known already, if no other process knows this rule.)
    if scratch.module.key(address, generation).is_none() {
        scratch.module.become_of(&image, generation);
    }
    let key = scratch.module.key(address, generation);
    if let Some(rule) = key.map(shared::get).filter(|&rule| rule != Rule(0)) {
        if let Some(cache) = cache {
            cache.put(address, rule, generation);
        }
        return (rule, true);
    }
    if !scratch.has_context {
        NEW_CONTEXT.copy_to(&mut scratch.context);
        scratch.has_context = true;
    }
    // SAFETY: the context was made above, or before.
    let context = unsafe { scratch.context.assume_init_mut() };
    let mut look = |address| {
        let find = |at| image.segment_around(at);
        image.unwind_header().map_or(Rule::BY_FRAME_POINTER, |header| {
            tables::rule_at(address, header, find, context, &NUMBERS)
        })
    };
    let mut rule = look(address);
    if rule == Rule::BY_FRAME_POINTER {
        // If a return address is the first address of a function, and the address before it has no
        // tables, no call pushed it. The kernel pushed it below a signal handler, or `makecontext`
        // pushed it at a stack's end.
        let first = look(address.wrapping_add(1));
        if first == Rule::SIGNAL {
            rule = first;
        } else if first != Rule::BY_FRAME_POINTER {
            rule = Rule::END;
        } else if !image.is_code(address) {
            rule = Rule::UNKNOWN;
        }
    }
    if let Some(cache) = cache {
        cache.put(address, rule, generation);
    }
    if let Some(key) = key {
        shared::put(key, rule);
    }
    (rule, true)
}

/// Returns the rule that another process has read for an address in the last module.
fn learnt_by_others(scratch: &Scratch, address: usize, generation: u32) -> Option<Rule> {
    let rule = shared::get(scratch.module.key(address, generation)?);
    (rule != Rule(0)).then_some(rule)
}

/// Returns whether these two instructions are at an address, which may be unreadable.
fn is_at(pc: usize, code: [u32; 2]) -> bool {
    let words = [pc, pc.wrapping_add(4)];
    let readable = |&word: &usize| os::is_readable(word & !7);
    if !pc.is_multiple_of(4) || !words.iter().all(readable) {
        return false;
    }
    words.map(|word| {
        let at = core::ptr::with_exposed_provenance::<u32>(word);
        // SAFETY: aligned, and the eight bytes around it can be read.
        unsafe { at.read_volatile() }
    }) == code
}

/// Makes a step by any rule. Returns `None` if the walk ends.
#[cold]
#[inline(never)]
fn odd_step(
    scratch: &mut Scratch,
    reader: &mut Reader,
    at: &mut Position,
    noted: &mut Noted,
    rule: Rule,
) -> Option<()> {
    if rule == Rule::SIGNAL {
        return through_signal(scratch, reader, at);
    }
    let (cfa, back, frame) = if rule == Rule::BY_FRAME_POINTER {
        (Cfa::At { base: Base::Fp, offset: 16 }, Return::Saved(-8), Frame::AtCfa(-16))
    } else if rule.is_frame() {
        (rule.cfa(), rule.back(), rule.frame())
    } else {
        return None;
    };
    let Registers { sp, fp, link, .. } = at.now;
    let slots = &mut scratch.slots;
    // From here on the frame pointer counts as used: the walk may read through it.
    noted.count = slots.note(noted.count, at.fp_place, fp, at.fp_place != 0);
    noted.fp_matters |= at.fp_original;
    at.fp_place = 0;
    let value = |base| if base == Base::Sp { sp } else { fp };
    let cfa = match cfa {
        Cfa::At { base, offset } => value(base).wrapping_add_signed(offset as isize),
        Cfa::Through { base, offset, after } => {
            let place = value(base).wrapping_add_signed(offset as isize);
            let word = reader.word(place)?;
            noted.count = slots.note(noted.count, place, word, true);
            word.wrapping_add_signed(after as isize)
        }
    };
    // With a link register, a leaf function may use no stack at all.
    if cfa < sp || (cfa == sp && back != Return::Link) || !cfa.is_multiple_of(8) {
        return None;
    }
    let pc = match back {
        Return::Saved(offset) => {
            let place = cfa.wrapping_add_signed(offset as isize);
            let word = reader.word(place)?;
            noted.count = slots.note(noted.count, place, word, true);
            bare(word)
        }
        // The link register is known in the first frame and at a signal's interruption.
        Return::Link => {
            at.keepable = false;
            bare(link)
        }
    };
    let place = match frame {
        Frame::AtCfa(offset) => Some(cfa.wrapping_add_signed(offset as isize)),
        Frame::AtFp(offset) => Some(fp.wrapping_add_signed(offset as isize)),
        Frame::Same | Frame::Lost => None,
    };
    let fp = match place {
        Some(place) => {
            let word = reader.word(place)?;
            at.fp_place = place;
            at.fp_original = false;
            word
        }
        None if frame == Frame::Lost => 0,
        None => fp,
    };
    at.fp_original &= frame != Frame::Lost;
    at.now = Registers { pc, sp: cfa, fp, link: 0 };
    at.exact = false;
    is_address(pc).then_some(())
}

/// The interrupted frame may be on another stack.
fn through_signal(scratch: &mut Scratch, reader: &mut Reader, at: &mut Position) -> Option<()> {
    at.keepable = false;
    at.signals += 1;
    if at.signals > MAX_SIGNALS {
        return None;
    }
    let saved = at.now.sp.checked_add(UCONTEXT)?;
    let now = Registers {
        pc: reader.word(saved.checked_add(SAVED_PC)?)?,
        sp: reader.word(saved.checked_add(SAVED_SP)?)?,
        fp: reader.word(saved.checked_add(SAVED_FP)?)?,
        link: reader.word(saved.checked_add(SAVED_LINK)?)?,
    };
    *reader = Reader::new(now.sp, scratch.own.end(now.sp));
    at.now = now;
    at.exact = true;
    is_address(now.pc).then_some(())
}

#[inline(always)]
fn is_address(pc: usize) -> bool {
    (4096..1 << 56).contains(&pc)
}

/// Repeats the walk that the memo would answer, for tests.
#[cfg(all(test, target_env = "gnu"))]
pub(in super::super) fn capture_by_walking(
    scratch: &mut Scratch,
    depth: usize,
    start: &Registers,
) -> Stack {
    let end = scratch.own.end(start.sp);
    walk(scratch, depth, start, false, end, cache::generation())
}

#[cfg(all(test, target_env = "gnu"))]
impl Registers {
    pub(in super::super) fn sp_for_test(&self) -> usize {
        self.sp
    }
}

#[cfg(all(test, target_env = "gnu"))]
pub(in super::super) fn registers_for_test(pc: usize, sp: usize, fp: usize) -> Registers {
    Registers { pc, sp, fp, link: 0 }
}
