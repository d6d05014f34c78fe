//! The statistics as text and as XML.
//!
//! Both are made from one [`Stats`], without allocation. The text is for people
//! (`malloc_stats`, option `stats=exit`); programs read the stats file or `hw_get_stats`. The XML
//! is glibc's `malloc_info` document, version 1: its elements that have a meaning here, and an
//! element `heapwright` with every field under its own name.

use crate::text::Text;
use heapwright_record::Stats;

/// Room for either report: about 45 fields of less than 64 bytes, and a histogram of 48 lines.
pub(crate) type Report = Text<8192>;

const BAR: u64 = 40;

/// The text for people. Each line begins with the library's name: the program may write there, too.
#[cold]
pub(crate) fn text(out: &mut Report, stats: &Stats) {
    out.str("heapwright: memory of process ").number(stats.pid);
    let name = stats.name();
    if name[0] != 0 {
        out.str(" (");
        for &byte in name.iter().take_while(|&&byte| byte != 0) {
            // The program chose the name: no byte of it may control a terminal.
            out.byte(if byte.is_ascii_graphic() { byte } else { b'?' });
        }
        out.byte(b')');
    }
    out.str(" after ").number(stats.elapsed_ns / 1_000_000).str(" ms\n");
    for (name, value) in [
        ("resident, peak", stats.peak_rss),
        ("resident now", stats.rss),
        ("  live blocks", stats.rss_live),
        ("  rounding", stats.rss_rounding),
        ("  partial slabs", stats.rss_partial),
        ("  thread caches", stats.rss_caches),
        ("  remote backlog", stats.rss_remote),
        ("  lazily freed", stats.rss_lazy),
        ("  metadata", stats.rss_metadata),
        ("  pools, arenas", stats.rss_pools),
        ("  not heapwright's", stats.rss_not_ours),
    ] {
        line(out, name).kib(value, 12).byte(b'\n');
    }
    line(out, "live").kib(stats.live_bytes, 12);
    out.str(" in ").number(stats.live_blocks).str(" blocks; ");
    out.number(stats.large_blocks).str(" of them large with ");
    out.kib(stats.large_bytes, 0).byte(b'\n');
    line(out, "given back so far").kib(stats.purged_bytes, 12).byte(b'\n');
    if stats.foreign_frees != 0 {
        line(out, "foreign frees").number_right(stats.foreign_frees, 12).byte(b'\n');
    }
    if stats.caches_shared != 0 {
        shared_caches(out, stats);
    }
    if stats.detailed != 0 {
        line(out, "live, peak").kib(stats.peak_live_bytes, 12).byte(b'\n');
        line(out, "allocations").number_right(stats.allocations, 12);
        out.str(" of ").kib(stats.requested_bytes, 0).byte(b'\n');
        line(out, "frees").number_right(stats.frees, 12).byte(b'\n');
        histogram(out, stats);
    }
}

fn shared_caches(out: &mut Report, stats: &Stats) {
    line(out, "shared caches").number_right(stats.caches_shared, 12);
    out.str(", ").number(stats.caches_touched).str(" of them used\n");
    line(out, "  free in them").kib(stats.caches_bytes, 12);
    out.str("; at most ").kib(stats.caches_largest, 0).str(" in one\n");
    for (name, value) in [
        ("  failed tries", stats.cache_failed_tries),
        ("  waits", stats.cache_waits),
        ("  rseq commits", stats.rseq_commits),
        ("  rseq aborts", stats.rseq_aborts),
        ("  rseq fallbacks", stats.rseq_fallbacks),
    ] {
        line(out, name).number_right(value, 12).byte(b'\n');
    }
}

#[inline(never)]
fn line<'a>(out: &'a mut Report, name: &str) -> &'a mut Report {
    out.str("heapwright:   ").left(name, 20)
}

/// Allocations by size: a bar for each power of two, from the first that occurred to the last.
fn histogram(out: &mut Report, stats: &Stats) {
    let most = stats.sizes.iter().copied().max().unwrap_or(0);
    let first = stats.sizes.iter().position(|&n| n != 0);
    let last = stats.sizes.iter().rposition(|&n| n != 0);
    let (Some(first), Some(last)) = (first, last) else { return };
    out.str("heapwright:   allocations of at most\n");
    for (bucket, &count) in stats.sizes.iter().enumerate().take(last + 1).skip(first) {
        out.str("heapwright:   ").number_right(1 << bucket, 14).str(" bytes");
        out.number_right(count, 14).byte(b' ');
        // Rounded up, so that one allocation shows.
        let columns = count.saturating_mul(BAR).div_ceil(most.max(1)).min(BAR);
        out.repeat(b'#', columns as usize).byte(b'\n');
    }
}

#[cold]
pub(crate) fn xml(out: &mut Report, stats: &Stats) {
    let small_blocks = stats.live_blocks.saturating_sub(stats.large_blocks);
    let small_bytes = stats.live_bytes.saturating_sub(stats.large_bytes);
    out.str("<malloc version=\"1\">\n");
    out.str("<total type=\"rest\" count=\"").number(small_blocks);
    out.str("\" size=\"").number(small_bytes).str("\"/>\n");
    out.str("<total type=\"mmap\" count=\"").number(stats.large_blocks);
    out.str("\" size=\"").number(stats.large_bytes).str("\"/>\n");
    out.str("<system type=\"current\" size=\"").number(stats.committed_bytes).str("\"/>\n");
    out.str("<aspace type=\"total\" size=\"").number(stats.window_bytes).str("\"/>\n");
    out.str("<aspace type=\"mprotect\" size=\"").number(stats.committed_bytes).str("\"/>\n");
    out.str("<heapwright>\n");
    for (name, value) in stats.fields() {
        out.byte(b'<').str(name).byte(b'>').number(value);
        out.str("</").str(name).str(">\n");
    }
    if stats.detailed != 0 {
        for (bucket, &count) in stats.sizes.iter().enumerate() {
            if count != 0 {
                out.str("<size to=\"").number(1 << bucket);
                out.str("\" count=\"").number(count).str("\"/>\n");
            }
        }
    }
    out.str("</heapwright>\n</malloc>\n");
}
