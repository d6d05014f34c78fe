//! The resident pages of a heap, from /proc/PID/pagemap: eight bytes a page.

use super::maps::Maps;
use super::process::{page_size, swapped};
use heapwright_record::status::Facts;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resident {
    pub(super) window: u64,
    /// Bytes of the tables that describe the heap.
    pub(super) tables: u64,
    /// Bytes of the heap and of the tables in swap space.
    pub(super) swapped: u64,
}

/// The most time for queries about one process.
const PATIENCE: Duration = Duration::from_millis(200);

/// Returns resident bytes; `None` if the process shows no addresses, the kernel refuses, or the
/// answer takes too long. A process may report wrong addresses.
pub(super) fn resident(pid: u32, facts: &Facts, maps: &Maps) -> Option<Resident> {
    if facts.window_at == 0 {
        return None;
    }
    let until = Instant::now() + PATIENCE;
    let file = File::open(format!("/proc/{pid}/pagemap")).ok()?;
    let mut all = Resident::default();
    let mut count = |at, bytes| {
        let mut present = 0;
        for (at, bytes) in maps.readable(at, bytes) {
            let (more, swapped) = pages(&file, at, bytes, until)?;
            present += more;
            all.swapped += swapped;
        }
        Some(present)
    };
    // Memory that the process has taken since its report lies behind the used part.
    let window = count(facts.window_at, facts.window_bytes.max(facts.window_used))?;
    let mut tables = 0;
    for (at, bytes) in [
        (facts.table_at, facts.table_bytes),
        (facts.records_at, facts.records_bytes),
        (facts.bitmaps_at, facts.bitmaps_bytes),
    ] {
        tables += count(at, bytes)?;
    }
    // Kernels before 6.15 show guard pages as pages in swap space.
    all.swapped = all.swapped.min(swapped(pid).unwrap_or(u64::MAX));
    (all.window, all.tables) = (window, tables);
    Some(all)
}

/// Returns the bytes of a range that are in memory, and in swap space.
fn pages(file: &File, at: u64, bytes: u64, until: Instant) -> Option<(u64, u64)> {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    /// A guard page (`MADV_GUARD_INSTALL`), whose entry has `SWAPPED`, too.
    const GUARD: u64 = 1 << 58;
    let page = page_size() as u64;
    let (mut present, mut swapped) = (0, 0);
    let mut buffer = vec![0; 64 << 10];
    let (mut from, end) = (at / page * 8, at.saturating_add(bytes).div_ceil(page) * 8);
    while from < end {
        let want = (end - from).min(buffer.len() as u64) as usize;
        let got = file.read_at(&mut buffer[..want], from).ok()? / 8 * 8;
        if got == 0 {
            break;
        }
        if Instant::now() > until {
            return None;
        }
        for entry in buffer[..got].as_chunks::<8>().0 {
            let entry = u64::from_le_bytes(*entry);
            present += u64::from(entry & PRESENT != 0) * page;
            swapped += u64::from(entry & (SWAPPED | GUARD) == SWAPPED) * page;
        }
        from += got as u64;
    }
    Some((present, swapped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_counted() {
        let page = page_size();
        let block = vec![1_u8; 64 * page];
        let facts = Facts {
            window_at: block.as_ptr().addr() as u64,
            window_used: block.len() as u64,
            ..Facts::default()
        };
        let me = std::process::id();
        let maps = Maps::of(me).expect("this process's own");
        let resident = resident(me, &facts, &maps).expect("this process's own");
        let most = resident.window + resident.swapped;
        assert!((64 * page as u64..=66 * page as u64).contains(&most), "{resident:?}");
        for window_at in [1, u64::MAX - 5] {
            let nonsense = Facts { window_at, window_used: u64::MAX, ..facts };
            let began = Instant::now();
            let resident = super::resident(me, &nonsense, &maps);
            assert!(resident.is_none_or(|resident| window_at != 1 || resident.window > 0));
            assert!(began.elapsed() < 10 * PATIENCE);
        }
        let bytes = 64 * page;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping replaces nothing. No one uses it, so its pages may be guards.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        const MADV_GUARD_INSTALL: i32 = 102;
        // SAFETY: the mapping is new, and no one uses it. (An older kernel refuses.)
        unsafe { libc::madvise(at, bytes, MADV_GUARD_INSTALL) };
        let guards =
            Facts { window_at: at.addr() as u64, window_used: bytes as u64, ..Facts::default() };
        let maps = Maps::of(me).expect("this process's own");
        assert_eq!(super::resident(me, &guards, &maps), Some(Resident::default()));
        let hidden = Facts { window_at: 0, ..facts };
        assert_eq!(super::resident(me, &hidden, &maps), None);
    }
}
