//! Unwind tables, the common case: runs an entry's program for the three columns of a walk.
//!
//! ```text
//!   FDE   length | back to its CIE | start | range | augmentation | program ...
//!   CIE   length | 0 | 1 | "zR" or "zPLR" | factors | column | augmentation | program ...
//!
//!   state   CFA: a register and an offset, or something odd
//!           return address, frame pointer: nothing said, saved at CFA + offset, or something odd
//! ```
//!
//! A process looks up some thousand addresses of code, each once. A general interpreter keeps 32
//! columns for each row and copies them when it remembers a row; here a row is 48 bytes.
//!
//! Odd descriptions (expressions, signal frames, the outermost frame, other encodings) are left to
//! `tables`. On an entry that both can read, both agree. A table that ends early, or has a number
//! larger than any compiler writes, is odd, too.

#![forbid(unsafe_code)]

use super::rule::{Base, Cfa, Frame, Return, Rule};
use super::tables::{Numbers, PC_RELATIVE_4, Section};

/// The most rows that are remembered at once.
const ROWS: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Column {
    Unsaid,
    /// Saved at this offset from the CFA.
    At(i64),
    Odd,
}

#[derive(Clone, Copy)]
enum Start {
    Sp,
    Fp,
    /// Another register.
    Other,
    /// An expression, or no rule yet.
    Odd,
}

#[derive(Clone, Copy)]
struct Row {
    start: Start,
    offset: i64,
    back: Column,
    frame: Column,
}

impl Row {
    const FIRST: Self =
        Self { start: Start::Odd, offset: 0, back: Column::Unsaid, frame: Column::Unsaid };
}

struct Shared<'a> {
    code: u64,
    data: i64,
    program: &'a [u8],
}

/// Returns the rule by the entry at an address in `section`, or `None` if the entry is odd.
pub(super) fn rule_of(
    pc: usize,
    entry: usize,
    section: Section<'_>,
    numbers: &Numbers,
) -> Option<Rule> {
    let at = entry.checked_sub(section.address)?;
    let (mut fde, back) = framed(section.bytes, at)?;
    let shared = shared(section.bytes, (at + 4).checked_sub(back as usize)?, numbers)?;
    let start = entry.wrapping_add(8).wrapping_add_signed(fde.word()? as i32 as isize);
    let range = fde.word()?;
    if range == 0 || range > i32::MAX as u32 {
        return None;
    }
    let offset = pc.wrapping_sub(start);
    if offset >= range as usize {
        // A gap between functions is code without tables.
        return Some(Rule::BY_FRAME_POINTER);
    }
    if pc < start {
        // The function wraps around the address space, so the table is damaged.
        return None;
    }
    let augmentation = fde.number()?;
    fde.skip(augmentation)?;
    let mut machine = Machine { shared: &shared, numbers, row: Row::FIRST, first: None };
    machine.run(Reader(shared.program), u64::MAX)?;
    machine.first = Some(machine.row);
    machine.run(fde, offset as u64)?;
    machine.row.rule(numbers)
}

/// Returns an entry's bytes behind its length and first word, and that word.
fn framed(bytes: &[u8], at: usize) -> Option<(Reader<'_>, u32)> {
    let mut reader = Reader(bytes.get(at..)?);
    let length = reader.word()?;
    // 0 ends the section, and the largest value begins a length of 64 bits.
    let mut entry = Reader(reader.0.get(..usize::try_from(length).ok()?)?);
    let word = entry.word()?;
    Some((entry, word))
}

fn shared<'a>(bytes: &'a [u8], at: usize, numbers: &Numbers) -> Option<Shared<'a>> {
    let (mut cie, id) = framed(bytes, at)?;
    if id != 0 || cie.byte()? != 1 || cie.byte()? != b'z' {
        return None;
    }
    let letters = cie.0;
    let length = letters.iter().position(|&letter| letter == 0)?;
    cie.skip(length as u64 + 1)?;
    let code = cie.number()?;
    let data = cie.signed()?;
    if u16::from(cie.byte()?) != numbers.return_address.0 {
        return None;
    }
    let augmentation = cie.number()?;
    let mut words = Reader(cie.0);
    cie.skip(augmentation)?;
    let mut is_known = false;
    for &letter in &letters[..length] {
        match letter {
            b'R' => is_known = words.byte()? == PC_RELATIVE_4,
            b'L' => words.skip(1)?,
            b'P' => match words.byte()? & 0x7f {
                // Four bytes, relative to their place or absolute.
                0x03 | 0x0b | 0x13 | 0x1b => words.skip(4)?,
                0x00 | 0x04 | 0x0c | 0x10 | 0x14 | 0x1c => words.skip(8)?,
                _ => return None,
            },
            _ => return None,
        }
    }
    is_known.then_some(Shared { code, data, program: cie.0 })
}

struct Machine<'a> {
    shared: &'a Shared<'a>,
    numbers: &'a Numbers,
    row: Row,
    /// The row after the CIE's program, once that has run.
    first: Option<Row>,
}

impl Machine<'_> {
    /// Runs a program up to the row at `target` bytes into the function, or to an odd instruction.
    fn run(&mut self, mut program: Reader<'_>, target: u64) -> Option<()> {
        let mut rows = [Row::FIRST; ROWS];
        let mut height = 0;
        let mut at = 0u64;
        loop {
            // Long programs consist mostly of these pairs: an advance, and a new offset of the CFA.
            if let [advance @ 0x40..0x80, 0x0e, offset @ 0..0x80, rest @ ..] = program.0
                && !matches!(self.row.start, Start::Odd)
            {
                at = self.advanced(at, u64::from(advance & 0x3f))?;
                if at > target {
                    break;
                }
                self.row.offset = i64::from(*offset);
                program = Reader(rest);
                continue;
            }
            let Some(code) = program.byte() else { break };
            let low = u64::from(code & 0x3f);
            let mut advance = None;
            match code >> 6 {
                1 => advance = Some(low),
                2 => {
                    let offset = program.number()? as i64;
                    self.say_saved(low, offset)?;
                }
                3 => self.restore(low)?,
                _ => match code {
                    0x00 => {}
                    0x02 => advance = Some(program.byte()?.into()),
                    0x03 => advance = Some(program.half()?.into()),
                    0x04 => advance = Some(program.word()?.into()),
                    0x05 => {
                        let (register, offset) = (program.number()?, program.number()? as i64);
                        self.say_saved(register, offset)?;
                    }
                    0x06 => {
                        let register = program.number()?;
                        self.restore(register)?;
                    }
                    // undefined, same value
                    0x07 | 0x08 => {
                        let register = program.number()?;
                        self.say(register, Column::Odd)?;
                    }
                    // in another register; the value of CFA + offset
                    0x09 | 0x14 => {
                        let register = program.number()?;
                        program.number()?;
                        self.say(register, Column::Odd)?;
                    }
                    0x0a => {
                        *rows.get_mut(height)? = self.row;
                        height += 1;
                    }
                    0x0b => {
                        height = height.checked_sub(1)?;
                        self.row = rows[height];
                    }
                    0x0c => {
                        self.row.start = self.start(program.number()?);
                        self.row.offset = program.number()? as i64;
                    }
                    0x0d if !matches!(self.row.start, Start::Odd) => {
                        self.row.start = self.start(program.number()?);
                    }
                    0x0e if !matches!(self.row.start, Start::Odd) => {
                        self.row.offset = program.number()? as i64;
                    }
                    0x0f => {
                        let length = program.number()?;
                        program.skip(length)?;
                        self.row.start = Start::Odd;
                    }
                    // by an expression
                    0x10 | 0x16 => {
                        let register = program.number()?;
                        let length = program.number()?;
                        program.skip(length)?;
                        self.say(register, Column::Odd)?;
                    }
                    0x11 => {
                        let (register, offset) = (program.number()?, program.signed()?);
                        self.say_saved(register, offset)?;
                    }
                    0x12 => {
                        self.row.start = self.start(program.number()?);
                        self.row.offset = program.signed()?.wrapping_mul(self.shared.data);
                    }
                    0x13 if !matches!(self.row.start, Start::Odd) => {
                        self.row.offset = program.signed()?.wrapping_mul(self.shared.data);
                    }
                    // From here on, return addresses are signed or no longer signed: a walk removes
                    // signatures.
                    0x2d if self.numbers.has_link_register => {}
                    // The size of the pushed arguments.
                    0x2e => {
                        program.number()?;
                    }
                    _ => return None,
                },
            }
            if let Some(advance) = advance {
                at = self.advanced(at, advance)?;
                if at > target {
                    break;
                }
            }
        }
        Some(())
    }

    fn advanced(&self, at: u64, by: u64) -> Option<u64> {
        at.checked_add(by.checked_mul(self.shared.code)?)
    }

    fn start(&self, register: u64) -> Start {
        if register == u64::from(self.numbers.sp.0) {
            Start::Sp
        } else if register == u64::from(self.numbers.fp.0) {
            Start::Fp
        } else {
            Start::Other
        }
    }

    /// Sets the column of a register. Ignores registers that a walk does not follow. Returns `None`
    /// for the stack pointer, whose rule must be the CFA.
    fn say(&mut self, register: u64, what: Column) -> Option<()> {
        if register == u64::from(self.numbers.return_address.0) {
            self.row.back = what;
        } else if register == u64::from(self.numbers.fp.0) {
            self.row.frame = what;
        } else if register == u64::from(self.numbers.sp.0) {
            return None;
        }
        Some(())
    }

    /// Sets a register as saved at `offset` times the entry's factor from the CFA.
    fn say_saved(&mut self, register: u64, offset: i64) -> Option<()> {
        self.say(register, Column::At(offset.wrapping_mul(self.shared.data)))
    }

    fn restore(&mut self, register: u64) -> Option<()> {
        let Row { back, frame, .. } = self.first?;
        if register == u64::from(self.numbers.return_address.0) {
            self.row.back = back;
        } else if register == u64::from(self.numbers.fp.0) {
            self.row.frame = frame;
        }
        Some(())
    }
}

impl Row {
    fn rule(self, numbers: &Numbers) -> Option<Rule> {
        let base = match self.start {
            Start::Sp => Base::Sp,
            Start::Fp => Base::Fp,
            Start::Other | Start::Odd => return None,
        };
        let back = match self.back {
            Column::At(offset) => Return::Saved(offset),
            Column::Unsaid if numbers.has_link_register => Return::Link,
            Column::Unsaid | Column::Odd => return None,
        };
        let frame = match self.frame {
            Column::At(offset) => Frame::AtCfa(offset),
            Column::Unsaid => Frame::Same,
            Column::Odd => return None,
        };
        Some(Rule::of_frame(Cfa::At { base, offset: self.offset }, back, frame))
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_ne_bytes)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn half(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    /// Returns a number of seven bits a byte (LEB128), of at most 28 bits, and its number of bits.
    fn bits(&mut self) -> Option<(u64, u32)> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some((number, shift + 7));
            }
        }
        None
    }

    fn number(&mut self) -> Option<u64> {
        self.bits().map(|(number, _)| number)
    }

    fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.bits()?;
        let unused = u64::BITS - bits;
        Some((number as i64) << unused >> unused)
    }
}
