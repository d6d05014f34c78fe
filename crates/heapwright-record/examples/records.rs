//! Makes a debug record of any size, for `ci/bounds.sh report`.
//!
//! ```text
//! records FILE FINDINGS MIB DIFFERENT
//! ```
//!
//! FINDINGS findings of double frees have three stacks each, so deep that the record has MIB in
//! all. DIFFERENT of the findings are different. The frames are at random places in this program.
//! One leak check has a group of blocks for every tenth different finding.

use heapwright_record::debug::{
    Call, Check, Checked, Encoder, Entry, Finding, FindingKind, Frames, HEADER, Leak, MOST_FRAMES,
    Module, Moment, Occasion, Origin, Process, Reach, Region, Stack, Usage,
};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

const PLACES: u64 = 5000;

/// About the bytes of a finding's entry, and the bytes of a stack's entry without frames.
const FINDING: usize = 157;
const STACK: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, findings, mib, different] = &words[..] else {
        return Err("records FILE FINDINGS MIB DIFFERENT".into());
    };
    let (findings, different): (u64, u64) = (findings.parse()?, different.parse()?);
    let size = mib.parse::<usize>()? << 20;
    let each = (size / (findings.max(1) as usize)).saturating_sub(FINDING + 3 * STACK) / 24;
    let depth = each.clamp(1, MOST_FRAMES);
    let mut out = Out { file: BufWriter::new(File::create(file)?), buffer: [0; 2048] };
    out.file.write_all(&HEADER)?;
    beginning(&mut out)?;

    let code = code()?;
    let mut random = Random(1);
    let places: Vec<u64> = (0..PLACES).map(|_| code.0 + random.below(code.1 - code.0)).collect();
    let mut frames = [0_u64; MOST_FRAMES];
    let mut stack = |out: &mut Out, id: u32, seed: u64| {
        let mut random = Random(seed + 1);
        frames[..depth].fill_with(|| places[random.below(PLACES) as usize]);
        out.put(Stack { id, frames: Frames::new(&frames[..depth]) })
    };
    for number in 0..findings {
        let which = number % different.max(1);
        for role in 0..3 {
            stack(&mut out, (3 * which + role + 1) as u32, 3 * which + role)?;
        }
        let moment = |role: u64| Moment {
            stack: (3 * which + role + 1) as u32,
            thread: 1,
            sequence: number + role,
            ns: number,
        };
        out.put(Finding {
            kind: FindingKind::DoubleFree,
            call: Call::Free,
            region: Region::Block,
            pointer: 0x7000_0000,
            block: 0x7000_0000,
            size: 40,
            here: moment(2),
            freed: moment(1),
            allocated: moment(0),
            ..Finding::default()
        })?;
    }
    check(&mut out, different.min(findings) / 10)?;
    out.file.flush()?;
    Ok(())
}

struct Out {
    file: BufWriter<File>,
    buffer: [u8; 2048],
}

impl Out {
    fn put<'a>(&mut self, entry: impl Into<Entry<'a>>) -> std::io::Result<()> {
        self.file.write_all(Encoder::new(&mut self.buffer).entry(&entry.into()))
    }
}

fn beginning(out: &mut Out) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let path = std::env::current_exe()?;
    let path = path.to_str().ok_or("the path is not text")?;
    let (time, command) = (u64::try_from(now)?, "records\0".into());
    out.put(Process { pid: 1, time, exe: path.into(), command, ..Process::default() })?;
    let (start, end) = span()?;
    let program = fs::read("/proc/self/exe")?;
    let build_id = build_id(&program).unwrap_or_default();
    out.put(Module {
        id: 1,
        start,
        end,
        bias: start,
        build_id: build_id.into(),
        path: path.into(),
    })?;
    Ok(())
}

fn check(out: &mut Out, groups: u64) -> std::io::Result<()> {
    let check = 1;
    out.put(Check { number: check, occasion: Occasion::Exit, ns: 1 << 40, ..Check::default() })?;
    for group in 0..groups {
        let (stack, blocks, bytes) = ((3 * group + 1) as u32, 1 + group % 7, 40 + group);
        let reach = Reach::ALL[1 + (group % 4) as usize];
        let origin = Origin::Malloc;
        out.put(Leak { check, reach, origin, stack, blocks, bytes, size: 40, ..Leak::default() })?;
        out.put(Usage { check, stack, blocks, bytes })?;
    }
    out.put(Checked { check, took_ns: 1, ..Checked::default() })
}

/// A line of a map: start, end, whether it is code.
type Line = (u64, u64, bool);

fn lines() -> Result<Vec<Line>, Box<dyn Error>> {
    let path = fs::read_link("/proc/self/exe")?;
    let path = path.to_str().ok_or("the path is not text")?.to_owned();
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        Some((hex(start)?, hex(end)?, words.next()?.contains('x')))
    };
    Ok(maps.lines().filter(|text| text.ends_with(&path)).filter_map(line).collect())
}

fn span() -> Result<(u64, u64), Box<dyn Error>> {
    let lines = lines()?;
    let first = lines.first().ok_or("the program is not in its own map")?;
    Ok((first.0, lines.last().map_or(first.1, |last| last.1)))
}

fn code() -> Result<(u64, u64), Box<dyn Error>> {
    let code = lines()?.into_iter().find(|line| line.2).ok_or("there is no code")?;
    Ok((code.0, code.1))
}

/// Returns the build-id: the bytes behind the head of its note.
fn build_id(program: &[u8]) -> Option<&[u8]> {
    const HEAD: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = program.windows(HEAD.len()).position(|bytes| bytes == HEAD)?;
    program.get(at + HEAD.len()..)?.get(..20)
}

/// Numbers that are the same every time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
