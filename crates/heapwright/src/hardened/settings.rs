//! What the hardened heap goes by: read-only from when it starts, and sealed where the kernel can.
//!
//! ```text
//!   one page of the library's data     | on, secret, table of slots, switches | nothing |
//! ```
//!
//! An attacker who can write to any place that he can name does not switch a check off here.
//!
//! Written once, by [`set`], under the lock that the process's heap starts with; everyone else
//! reads.

use core::cell::UnsafeCell;
use core::ptr;

use crate::options::Detect;
use crate::os;
use crate::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// The settings.
pub(super) struct Settings {
    /// What canaries are made with.
    pub(super) secret: u64,
    /// The word of the first slot of unit 0: see `slots`.
    pub(super) words: *const AtomicU16,
    /// What makes guarded blocks.
    pub(super) guards: Option<super::Guards>,
    /// Address space is limited, so the words are reserved bit by bit.
    pub(super) is_limited: bool,
    /// `hardened:full`.
    pub(super) full: bool,
    /// Misuse is reported, and the program goes on.
    pub(super) reports: bool,
    /// What is looked for.
    pub(super) detect: Detect,
}

/// Bytes of the page: the largest that a kernel of this architecture has, as far as we know.
const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };

#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
struct Page {
    on: AtomicBool,
    settings: UnsafeCell<Settings>,
}

// SAFETY: written before `on` is set, and never again.
unsafe impl Sync for Page {}

const _: () = assert!(size_of::<Page>() == PAGE);

static THE: Page = Page {
    on: AtomicBool::new(false),
    settings: UnsafeCell::new(Settings {
        secret: 0,
        words: ptr::null(),
        guards: None,
        is_limited: false,
        full: false,
        reports: false,
        detect: Detect::ALL,
    }),
};

/// Whether this process's `malloc` is the hardened heap's.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    THE.on.load(Ordering::Acquire)
}

/// The settings, of a process that has them.
#[inline(always)]
pub(super) fn get() -> &'static Settings {
    // SAFETY: the callers are the hardened heap's, which begins when they were written for good.
    unsafe { &*THE.settings.get() }
}

/// Makes the settings what they are from now on. Once.
///
/// # Safety
///
/// No other thread uses the hardened heap yet, and none calls this.
pub(super) unsafe fn set(settings: Settings) {
    // SAFETY: by the contract nobody reads them yet.
    unsafe { *THE.settings.get() = settings };
    THE.on.store(true, Ordering::Release);
    let at = ptr::from_ref(&THE).cast_mut().cast();
    // SAFETY: one whole page, or several, that are nobody else's, and that nobody writes to any
    // more.
    unsafe { os::seal(at, PAGE) };
}
