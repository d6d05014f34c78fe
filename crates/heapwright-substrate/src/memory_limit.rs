//! The memory limit of the process, its nearness, and the pressure on memory.
//!
//! ```text
//!   in use       0 ------------- 3/4 ---------- 9/10 --------- 19/20 ------ limit
//!   nearness          far         |    close     |     near      |  at it
//!
//!   purge delay  as requested     |  250 ms      |   50 ms       |  20 ms, and `limit` purges all
//!   dirty runs   any number       |  1/2 of the bytes left       |  1/8, while the heap grows
//!   huge pages   as requested                    |  none for new memory
//!   a stash      4 MiB at most                   |  256 KiB at most
//!
//!   pressure     0 ------ 2 % ------ 10 %   of the time some thread waits: far | close | near
//! ```
//!
//! The limit is the smallest limit of the process's control groups
//! (`heapwright_record::control_group`), or one that the user or the program sets for the process
//! alone. For `RLIMIT_AS` see `chunk::address_limit`.
//!
//! A *look* finds the memory in use and the limit, mostly in the kernel's files. In a group, the
//! memory of all its processes counts; from 3/4 of the limit on, without file pages that the kernel
//! can drop. Under a limit for the process alone, the heap's memory counts, and from 3/4 on, the
//! process's resident memory. Much growth of the heap makes a look due at once ([`note_fresh`]).
//!
//! Pressure (PSI) is the part of the last ten seconds in which some thread waited for the kernel to
//! free pages. It is in `memory.pressure` of the limited group, or in `/proc/pressure/memory`.
//!
//! No memory safety depends on these values, so all accesses are relaxed. One thread looks at a
//! time. Called by the modules that keep free memory, `chunk` (growth), `limit` (looks), and heaps.
#![forbid(unsafe_code)]

use heapwright_record::control_group;

use crate::digits::number;
use crate::files::Path;
use crate::os;
pub use crate::os::is_in_sandbox;
use crate::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use crate::ticks::{self, Kept, Whose};

/// The nearness of the limit. Pressure on memory can raise it to `Near`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Nearness {
    /// Less than three quarters of the limit are in use, or there is no limit.
    Far,
    /// Three quarters are in use.
    Close,
    /// Nine tenths are in use.
    Near,
    /// Nineteen twentieths are in use.
    AtIt,
}

impl Nearness {
    const ALL: [Self; 4] = [Self::Far, Self::Close, Self::Near, Self::AtIt];

    /// The nearness by the bytes in use. It falls only a fiftieth of the limit below its bound.
    fn of(used: usize, limit: usize, before: Self) -> Self {
        let share = |part: usize, of: usize| limit / of * part;
        let begins = [0, share(3, 4), share(9, 10), share(19, 20)];
        let now = |used: usize| {
            let reached = begins.iter().rposition(|&from| used >= from);
            Self::ALL[reached.unwrap_or(0)]
        };
        now(used).max(now(used.saturating_add(limit / 50)).min(before))
    }

    /// The longest purge delay in milliseconds.
    const fn longest_delay(self) -> i32 {
        match self {
            Self::Far => i32::MAX,
            Self::Close => 250,
            Self::Near => 50,
            Self::AtIt => 20,
        }
    }

    /// Dirty runs may take 1 / `part` of the bytes left below the limit while the heap grows.
    const fn part(self) -> usize {
        match self {
            Self::Far => 1,
            Self::Close | Self::Near => 2,
            Self::AtIt => 8,
        }
    }
}

static NEARNESS: AtomicU8 = AtomicU8::new(Nearness::Far as u8);
/// Bytes of dirty runs that may wait while the heap grows.
static MAY_WAIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Bytes that the heap has taken since the last look. If `FRESH` exceeds `UNSEEN`, a look is due.
static FRESH: AtomicUsize = AtomicUsize::new(0);
static UNSEEN: AtomicUsize = AtomicUsize::new(SMALL);
/// The longest run since the last look, in bytes.
static LONGEST: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Bytes left below the limit at the last look. `usize::MAX`: there is no limit, or the heap is so
/// small that no look was needed.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether `bytes` more bytes may exceed the limit. This uses the last look and later growth.
#[inline]
pub fn is_short_of(bytes: usize) -> bool {
    let left = LEFT.load(Ordering::Relaxed);
    left != usize::MAX && FRESH.load(Ordering::Relaxed).saturating_add(bytes) >= left / 20 * 19
}

/// The nearness of the limit.
#[inline]
pub fn nearness() -> Nearness {
    Nearness::ALL[usize::from(NEARNESS.load(Ordering::Relaxed)) % Nearness::ALL.len()]
}

/// A purge delay of `ms` milliseconds (negative: for ever), made shorter near the limit.
#[inline]
pub fn delay(ms: i32) -> i32 {
    match nearness() {
        Nearness::Far => ms,
        near => (ms.cast_unsigned().min(near.longest_delay() as u32)).cast_signed(),
    }
}

/// Bytes of dirty runs that may wait while the heap grows.
#[inline]
pub fn may_wait() -> usize {
    MAY_WAIT.load(Ordering::Relaxed)
}

/// The limit, if there is one.
pub fn limit() -> Option<usize> {
    Some(LIMIT.load(Ordering::Relaxed)).filter(|&limit| limit != 0)
}

/// Notes that the heap takes this many bytes that were probably not resident before.
#[inline]
pub fn note_fresh(bytes: usize) {
    let fresh = FRESH.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
    if bytes >= WORTH_A_LOOK {
        LONGEST.fetch_max(bytes, Ordering::Relaxed);
    }
    if fresh > UNSEEN.load(Ordering::Relaxed) {
        ticks::hurry(Whose::Limit);
    }
}

/// The result of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Bytes in use.
    pub used: usize,
    /// The limit in bytes.
    pub limit: usize,
    /// Bytes of the longest run since the last look, if it is long. They may be untouched so far.
    pub fresh: usize,
}

impl Look {
    /// Whether the bytes in use and the fresh run reach nineteen twentieths of the limit. (A run
    /// that reaches the limit alone does not count: probably no program fills it.)
    pub fn is_at_limit(&self) -> bool {
        let fresh = if self.is_beyond_limit() { 0 } else { self.fresh };
        self.used.saturating_add(fresh) >= self.limit / 20 * 19
    }

    /// Whether the fresh run alone reaches the limit. In a group, a program that fills it dies.
    pub fn is_beyond_limit(&self) -> bool {
        self.fresh >= self.limit
    }
}

fn note(look: &Look, before: Nearness) -> (Nearness, u32) {
    let nearness = Nearness::of(look.used, look.limit, before);
    let left = look.limit.saturating_sub(look.used);
    NEARNESS.store(nearness as u8, Ordering::Relaxed);
    LIMIT.store(look.limit, Ordering::Relaxed);
    LEFT.store(left, Ordering::Relaxed);
    let may_wait = if nearness == Nearness::Far { usize::MAX } else { left / nearness.part() };
    MAY_WAIT.store(may_wait, Ordering::Relaxed);
    // Because of the lower bounds, not each page near the limit causes a look.
    UNSEEN.store((left / 4).max(look.limit / 256).max(WORTH_A_LOOK), Ordering::Relaxed);
    let wait = match nearness {
        Nearness::Far => 100,
        Nearness::Close => 20,
        Nearness::Near | Nearness::AtIt => 8,
    };
    (nearness, wait)
}

fn is_far(unseen: usize) {
    NEARNESS.store(Nearness::Far as u8, Ordering::Relaxed);
    MAY_WAIT.store(usize::MAX, Ordering::Relaxed);
    LEFT.store(usize::MAX, Ordering::Relaxed);
    UNSEEN.store(unseen, Ordering::Relaxed);
}

/// Notes that no limit is known.
pub fn forget() {
    is_far(usize::MAX);
    LIMIT.store(0, Ordering::Relaxed);
}

fn note_pressure(pressure: Nearness) {
    if pressure > nearness() {
        NEARNESS.store(pressure as u8, Ordering::Relaxed);
        MAY_WAIT.fetch_min(SMALL, Ordering::Relaxed);
    }
}

fn begin_anew() -> usize {
    FRESH.store(0, Ordering::Relaxed);
    LONGEST.swap(0, Ordering::Relaxed)
}

fn read_number(folder: &Path, name: &[u8]) -> Option<usize> {
    let mut text = [0; 32];
    let length = folder.read_in(name, &mut text);
    number(&text[..length])
}

fn field(text: &[u8], name: &[u8]) -> Option<usize> {
    text.split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(b" "))
        .and_then(number)
}

/// The pressure in the text of the kernel's file, as a nearness. A nearness ends when the
/// percentage is below half of its threshold. `None`: the text has no percentage.
fn pressure(text: &[u8], before: Nearness) -> Option<Nearness> {
    let percent = text.strip_prefix(b"some avg10=").and_then(number)?;
    let begins = |from: Nearness, at: usize| {
        let at = if before >= from { at / 2 } else { at };
        percent >= at
    };
    Some(if begins(Nearness::Near, NEAR_PERCENT) {
        Nearness::Near
    } else if begins(Nearness::Close, CLOSE_PERCENT) {
        Nearness::Close
    } else {
        Nearness::Far
    })
}

const NEAR_PERCENT: usize = 10;
const CLOSE_PERCENT: usize = 2;

/// This is not on the stack, because the stack of a coroutine is short.
static TEXT: Kept<[u8; 4096]> = Kept::new([0; 4096]);

#[derive(Clone, Copy)]
struct Group {
    folder: Path,
    is_second_version: bool,
    limit: usize,
}

/// The smallest valid limit, in bytes.
pub const LEAST_LIMIT: usize = control_group::LEAST_LIMIT as usize;

impl Group {
    #[inline(never)]
    fn limit_of(group: &control_group::Group<'_>, file: &str) -> Option<u64> {
        let mut path = Path::none();
        for part in [group.root.as_bytes(), group.path, b"/", file.as_bytes()] {
            path.push(part);
        }
        let mut text = [0; 32];
        let length = path.read(&mut text);
        number(&text[..length]).map(|limit| limit as u64)
    }

    #[inline(never)]
    fn used(&self) -> Option<usize> {
        let name: &[u8] =
            if self.is_second_version { b"/memory.current" } else { b"/memory.usage_in_bytes" };
        let used = read_number(&self.folder, name)?;
        if used < self.limit / 4 * 3 {
            return Some(used);
        }
        let names: &[&[u8]] = if self.is_second_version {
            &[b"inactive_file", b"active_file", b"slab_reclaimable"]
        } else {
            &[b"total_inactive_file", b"total_active_file"]
        };
        let files = TEXT.with(|text| {
            let length = self.folder.read_in(b"/memory.stat", text);
            names.iter().filter_map(|name| field(&text[..length], name)).sum()
        });
        Some(used.saturating_sub(files.unwrap_or(0)))
    }
}

#[derive(Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "there is one, in a static")]
enum Source {
    None,
    Own(usize),
    Group(Group),
}

/// The state of the looks at the limit.
#[derive(Clone, Copy)]
pub struct Watcher {
    source: Source,
    /// The requested limit; `None`: the limit of the control groups.
    asked: Option<usize>,
    found_ms: u32,
    /// The earliest time of the next look; `left`: the bytes that were left at the last look.
    again_ns: u64,
    left: usize,
    near: Nearness,
    /// The pressure; `due_ms`: the time to read it again; 0: at once.
    pressure: Nearness,
    due_ms: u32,
}

const SMALL: usize = 16 << 20;
/// No look reads a group's memory in use before the heap has 1 / `LITTLE` of the limit.
const LITTLE: usize = 16;
const WORTH_A_LOOK: usize = 1 << 20;
/// Looks may take 1 / `SHARE` of the time.
const SHARE: u64 = 50;
const IDLE_MS: u32 = 50;
/// The milliseconds after which the limit is read again, because it may change.
const AGAIN_MS: u32 = 10_000;
/// The milliseconds after which a pressure is read again. The kernel renews it every two seconds.
const PRESSURE_MS: u32 = 1000;

impl Watcher {
    /// A state without a look so far.
    pub const fn new() -> Self {
        Self {
            source: Source::None,
            asked: None,
            found_ms: 0,
            again_ns: 0,
            left: 0,
            near: Nearness::Far,
            pressure: Nearness::Far,
            due_ms: 0,
        }
    }

    /// Sets a limit for the process's own memory. `None`: the limit of its groups counts.
    pub fn ask(&mut self, limit: Option<usize>) {
        if limit != self.asked {
            self.asked = limit;
            (self.found_ms, self.again_ns) = (0, 0);
            forget();
            begin_anew();
        }
    }

    /// Looks, unless the heap is small or the last look is too recent. `heap`: bytes of the heap
    /// that may be in memory. Returns the result, if any, and the milliseconds until the next call.
    pub fn look(&mut self, now: u32, heap: usize) -> (Option<Look>, u32) {
        const SOON_MS: u32 = 8;
        if heap < SMALL && self.asked.is_none() {
            begin_anew();
            is_far(SMALL);
            return (None, IDLE_MS);
        }
        let began = os::now_ns();
        if began < self.again_ns && LONGEST.load(Ordering::Relaxed) < self.left {
            return (None, SOON_MS);
        }
        let fresh = begin_anew();
        if self.found_ms == 0 || now.wrapping_sub(self.found_ms) >= AGAIN_MS {
            self.found_ms = now.max(1);
            self.find();
        }
        let (look, wait) = self.look_at_limit(heap, fresh);
        self.look_at_pressure(now);
        let took = os::now_ns().saturating_sub(began);
        self.again_ns = began + took.saturating_mul(SHARE);
        (look, wait)
    }

    fn look_at_limit(&mut self, heap: usize, fresh: usize) -> (Option<Look>, u32) {
        let (used, limit) = match &self.source {
            Source::None => (None, 0),
            Source::Own(limit) if heap < limit / 4 * 3 => (Some(heap), *limit),
            Source::Own(limit) => match os::resident_now() {
                0 => (Some(heap), *limit),
                resident => (Some(resident), *limit),
            },
            Source::Group(group) if heap < group.limit / LITTLE => {
                is_far(group.limit / LITTLE);
                (self.near, self.left) = (Nearness::Far, group.limit - heap);
                return (None, IDLE_MS);
            }
            Source::Group(group) => (group.used(), group.limit),
        };
        let Some(used) = used else {
            forget();
            (self.source, self.near, self.left) = (Source::None, Nearness::Far, usize::MAX);
            return (None, PRESSURE_MS);
        };
        let look = Look { used, limit, fresh };
        self.left = limit.saturating_sub(used);
        let (near, wait) = note(&look, self.near);
        self.near = near;
        (Some(look), wait)
    }

    #[inline(never)]
    fn look_at_pressure(&mut self, now: u32) {
        if self.due_ms == 0 || now.wrapping_sub(self.due_ms).cast_signed() >= 0 {
            let mut text = [0; 64];
            let groups = match &self.source {
                Source::Group(group) if group.is_second_version => {
                    let length = group.folder.read_in(b"/memory.pressure", &mut text);
                    pressure(&text[..length], self.pressure)
                }
                _ => None,
            };
            let pressure = groups.or_else(|| {
                let length = os::read_beginning(c"/proc/pressure/memory", &mut text);
                pressure(&text[..length], self.pressure)
            });
            self.pressure = pressure.unwrap_or(Nearness::Far);
            let wait = if pressure.is_some() { PRESSURE_MS } else { AGAIN_MS };
            self.due_ms = now.wrapping_add(wait).max(1);
        }
        note_pressure(self.pressure);
    }

    #[inline(never)]
    fn find(&mut self) {
        self.due_ms = 0;
        self.source = Source::None;
        if let Some(limit) = self.asked {
            self.source = Source::Own(limit);
            return;
        }
        let source = &mut self.source;
        TEXT.with(|groups| {
            let length = os::read_beginning(c"/proc/self/cgroup", groups);
            let least = control_group::least(&groups[..length], Group::limit_of);
            let Some((group, limit)) = least else { return };
            let (limit, is_second_version) = (limit as usize, group.is_second_version);
            *source = Source::Group(Group { folder: Path::none(), is_second_version, limit });
            if let Source::Group(found) = source {
                found.folder.push(group.root.as_bytes());
                found.folder.push(group.path);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_and_fields_are_read() {
        assert_eq!(number(b"402653184\n"), Some(402_653_184));
        for none in ["max\n", "", "99999999999999999999999"] {
            assert_eq!(number(none.as_bytes()), None);
        }
        let stat = b"anon 5\nactive_file 7\ninactive_file 11\n";
        assert_eq!(field(stat, b"active_file"), Some(7));
        assert_eq!(field(stat, b"file"), None);
    }

    #[test]
    #[cfg(not(miri))]
    fn what_a_group_uses_is_read_of_both_versions() {
        let files = |is_second_version| match is_second_version {
            true => ("memory.current", "anon 9\ninactive_file 5000000\nslab_reclaimable 1000000\n"),
            false => ("memory.usage_in_bytes", "inactive_file 7\ntotal_inactive_file 6000000\n"),
        };
        for is_second_version in [false, true] {
            let name = format!("heapwright-{}-{is_second_version}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let (usage, stat) = files(is_second_version);
            std::fs::write(folder.join("memory.stat"), stat).unwrap();
            let path = Path::none().with(folder.as_os_str().as_encoded_bytes());
            let group = Group { folder: path, is_second_version, limit: 40_000_000 };
            // File pages are subtracted only if the limit may be near.
            for (all, used) in [(20_000_000, 20_000_000), (39_000_000, 33_000_000)] {
                std::fs::write(folder.join(usage), format!("{all}\n")).unwrap();
                assert_eq!(group.used(), Some(used));
            }
            std::fs::remove_dir_all(&folder).unwrap();
            assert_eq!(group.used(), None);
        }
    }

    #[test]
    fn pressure_is_read_and_stays_until_it_is_half_as_much() {
        use Nearness::{Close, Far, Near};
        let at = |percent: &str, before| {
            pressure(
                format!("some avg10={percent} avg60=0.00 avg300=0.00 total=9\n").as_bytes(),
                before,
            )
        };
        assert_eq!(at("0.00", Near), Some(Far));
        assert_eq!((at("1.99", Far), at("1.00", Close)), (Some(Far), Some(Close)));
        assert_eq!((at("2.00", Far), at("9.99", Far)), (Some(Close), Some(Close)));
        assert_eq!(
            (at("10.00", Far), at("5.00", Near), at("4.99", Near)),
            (Some(Near), Some(Near), Some(Close))
        );
        for none in ["", "some", "some avg10=x", "full avg10=99.00"] {
            assert_eq!(pressure(none.as_bytes(), Near), None);
        }
    }

    proptest! {
        #![proptest_config(crate::testing::cases(500))]

        #[test]
        fn the_more_is_used_the_nearer(limit in 1000..1_usize << 50, used in 0..1_usize << 51,
                                       more in 0..1_usize << 40, at in 0..4_usize) {
            let before = Nearness::ALL[at];
            let now = Nearness::of(used, limit, before);
            prop_assert!(Nearness::of(used + more, limit, before) >= now);
            // The nearness stays, but not for more than a fiftieth.
            prop_assert_eq!(Nearness::of(used, limit, now), now);
            let below = used.saturating_sub(limit / 50 + 1);
            prop_assert!(Nearness::of(below, limit, Nearness::AtIt) <= Nearness::of(used, limit, Nearness::Far));
        }

        #[test]
        fn a_limit_only_shortens_delays(ms in any::<i32>(), at in 0..4_usize) {
            let longest = Nearness::ALL[at].longest_delay();
            let shorter = (ms.cast_unsigned().min(longest as u32)).cast_signed();
            prop_assert!(shorter == ms || (0..=longest).contains(&shorter));
        }
    }
}
