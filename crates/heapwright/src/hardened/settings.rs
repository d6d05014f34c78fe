//! The hardened heap's settings. After the start they are read-only, and sealed if possible.
//!
//! ```text
//!   one page of the library's data     | on, secret, table of slots, switches | nothing |
//! ```
//!
//! An attacker who can write anywhere cannot switch a check off here. Only [`set`] writes, once,
//! under the lock of the process heap's start.

use core::cell::UnsafeCell;
use core::ptr;

use crate::options::Detect;
use crate::os;
use crate::sync::atomic::{AtomicBool, AtomicU16, Ordering};

pub(super) struct Settings {
    pub(super) secret: u64,
    /// The word of the first slot of unit 0: see `slots`.
    pub(super) words: *const AtomicU16,
    pub(super) guards: Option<super::Guards>,
    /// Whether address space was limited at the start.
    pub(super) is_limited: bool,
    pub(super) full: bool,
    pub(super) reports: bool,
    pub(super) detect: Detect,
}

/// Bytes of the page: the largest known page size of this architecture.
const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };

#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
struct Page {
    on: AtomicBool,
    settings: UnsafeCell<Settings>,
}

// SAFETY: the page is written before `on` is set, and never again.
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

/// Returns whether the hardened heap serves this process's `malloc`.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    THE.on.load(Ordering::Acquire)
}

#[inline(always)]
pub(super) fn get() -> &'static Settings {
    // SAFETY: only the hardened heap calls this, and it starts after the settings are final.
    unsafe { &*THE.settings.get() }
}

/// # Safety
///
/// No other thread uses the hardened heap yet, and no other thread calls this function.
pub(super) unsafe fn set(settings: Settings) {
    // SAFETY: the caller promises that no code reads the settings yet.
    unsafe { *THE.settings.get() = settings };
    THE.on.store(true, Ordering::Release);
    let at = ptr::from_ref(&THE).cast_mut().cast();
    // SAFETY: the pages are whole and hold nothing else, and no code writes them from now on.
    unsafe { os::seal(at, PAGE) };
}
