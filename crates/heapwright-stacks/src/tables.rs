//! Unwind tables: converts a compiler's bytes to a [`Rule`].
//!
//! ```text
//!   .eh_frame_hdr   1 | encodings | place of .eh_frame | n | n times (function, entry), sorted
//!                                                            |
//!   .eh_frame       ... CIE (the common part) <-- FDE <------+ by binary search
//!                                                 |
//!                                                 its program, run up to the address: a row
//! ```
//!
//! Every linker writes the header's table in one form: 32-bit offsets from the header. A module
//! without it counts as a module without tables. `quick` reads most entries. gimli parses the other
//! entries and runs their programs, with rows in the caller's memory. Expressions run on symbols:
//! `register + offset` stays symbolic, so the result is a rule, not an address.
//!
//! A bad entry gives [`Rule::UNKNOWN`], a bad header [`Rule::BY_FRAME_POINTER`].

#![forbid(unsafe_code)]

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, NativeEndian, Operation, Register,
    RegisterRule, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow,
};

use super::quick;
use super::rule::{Base, Cfa, Frame, Return, Rule};

#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) sp: Register,
    pub(super) fp: Register,
    pub(super) return_address: Register,
    /// Whether a return address without a rule is in its register.
    pub(super) has_link_register: bool,
    pub(super) vendor: gimli::Vendor,
}

/// x86-64: `rsp`, `rbp`, and a column of its own for the return address.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the other machine's"))]
pub(super) const X86_64: Numbers = Numbers {
    sp: Register(7),
    fp: Register(6),
    return_address: Register(16),
    has_link_register: false,
    vendor: gimli::Vendor::Default,
};

/// aarch64: `sp`, `x29`, and the link register `x30`.
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "the other machine's"))]
pub(super) const AARCH64: Numbers = Numbers {
    sp: Register(31),
    fp: Register(29),
    return_address: Register(30),
    has_link_register: true,
    vendor: gimli::Vendor::AArch64,
};

pub(super) struct RowStorage;

impl UnwindContextStorage<usize> for RowStorage {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

pub(super) type Context = gimli::UnwindContext<usize, RowStorage>;

#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) address: usize,
    pub(super) bytes: &'a [u8],
}

type Bytes<'a> = EndianSlice<'a, NativeEndian>;

/// Returns the rule for the instruction at `pc`. `header` is the module's memory from
/// `.eh_frame_hdr` on. `find` returns the part of the module that contains an address.
pub(super) fn rule_at<'a>(
    pc: usize,
    header: Section<'a>,
    find: impl Fn(usize) -> Option<Section<'a>>,
    context: &mut Context,
    numbers: &Numbers,
) -> Rule {
    match entry_of(pc, header).and_then(|entry| Some((entry, find(entry)?))) {
        Some((entry, section)) => quick::rule_of(pc, entry, section, numbers)
            .unwrap_or_else(|| rule_of(pc, entry, section, context, numbers)),
        None => Rule::BY_FRAME_POINTER,
    }
}

pub(super) const PC_RELATIVE_4: u8 = 0x1b;
const UNSIGNED_4: u8 = 0x03;
const HEADER_RELATIVE_4: u8 = 0x3b;

fn entry_of(pc: usize, header: Section<'_>) -> Option<usize> {
    let (start, rest) = header.bytes.split_first_chunk::<12>()?;
    let [1, PC_RELATIVE_4, UNSIGNED_4, HEADER_RELATIVE_4, _, _, _, _, count @ ..] = *start else {
        return None;
    };
    let size = (u32::from_ne_bytes(count) as usize).checked_mul(8)?;
    let (pairs, _) = rest.get(..size)?.as_chunks::<8>();
    let word = |pair: &[u8; 8], at: usize| {
        let offset = i32::from_ne_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
        header.address.wrapping_add_signed(offset as isize)
    };
    let after = pairs.partition_point(|pair| word(pair, 0) <= pc);
    Some(word(pairs.get(after.checked_sub(1)?)?, 4))
}

/// Returns the rule for the instruction at `pc`, by the entry at an address in `section`.
#[cold]
#[inline(never)]
pub(super) fn rule_of(
    pc: usize,
    entry: usize,
    section: Section<'_>,
    context: &mut Context,
    numbers: &Numbers,
) -> Rule {
    let mut frames = EhFrame::new(section.bytes, NativeEndian);
    frames.set_address_size(8);
    frames.set_vendor(numbers.vendor);
    let bases = BaseAddresses::default().set_eh_frame(section.address as u64);
    let Some(offset) = entry.checked_sub(section.address) else { return Rule::UNKNOWN };
    let Ok(fde) = frames.fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
    else {
        return Rule::UNKNOWN;
    };
    if !fde.contains(pc as u64) {
        return Rule::BY_FRAME_POINTER;
    }
    if fde.is_signal_trampoline() {
        return Rule::SIGNAL;
    }
    if fde.cie().return_address_register() != numbers.return_address {
        return Rule::UNKNOWN;
    }
    match fde.unwind_info_for_address(&frames, &bases, context, pc as u64) {
        Ok(row) => rule_of_row(pc, row, &frames, numbers).unwrap_or(Rule::UNKNOWN),
        Err(_) => Rule::UNKNOWN,
    }
}

fn rule_of_row(
    pc: usize,
    row: &UnwindTableRow<usize, RowStorage>,
    frames: &EhFrame<Bytes<'_>>,
    numbers: &Numbers,
) -> Option<Rule> {
    let symbols = Symbols { pc, frames, numbers };
    let base = |register| {
        if register == numbers.sp {
            Some(Base::Sp)
        } else if register == numbers.fp {
            Some(Base::Fp)
        } else {
            None
        }
    };
    let back = match row.register(numbers.return_address) {
        Some(RegisterRule::Undefined) => return Some(Rule::END),
        Some(RegisterRule::Offset(offset)) => Return::Saved(offset),
        None | Some(RegisterRule::SameValue) if numbers.has_link_register => Return::Link,
        _ => return None,
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            Cfa::At { base: base(*register)?, offset: *offset }
        }
        CfaRule::Expression(expression) => match symbols.run(expression, None)? {
            Symbol::Plus(Start::Base(base), offset) => Cfa::At { base, offset },
            Symbol::Through(base, offset, after) => Cfa::Through { base, offset, after },
            _ => return None,
        },
    };
    // The caller's stack pointer is the CFA, unless the table gives another rule.
    if !matches!(row.register(numbers.sp), None | Some(RegisterRule::ValOffset(0))) {
        return None;
    }
    let frame = match row.register(numbers.fp) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Frame::Same,
        Some(RegisterRule::Offset(offset)) => Frame::AtCfa(offset),
        Some(RegisterRule::Expression(expression)) => {
            let start = Symbol::Plus(Start::Cfa, 0);
            match symbols.run(&expression, Some(start)) {
                Some(Symbol::Plus(Start::Cfa, offset)) => Frame::AtCfa(offset),
                Some(Symbol::Plus(Start::Base(Base::Fp), offset)) => Frame::AtFp(offset),
                _ => Frame::Lost,
            }
        }
        _ => Frame::Lost,
    };
    Some(Rule::of_frame(cfa, back, frame))
}

#[derive(Clone, Copy, PartialEq)]
enum Start {
    Base(Base),
    Cfa,
}

#[derive(Clone, Copy)]
enum Symbol {
    Number(i64),
    /// `start + offset`
    Plus(Start, i64),
    /// `*(base + offset) + after`
    Through(Base, i64, i64),
}

impl Symbol {
    fn plus(self, n: i64) -> Option<Self> {
        Some(match self {
            Self::Number(m) => Self::Number(m.wrapping_add(n)),
            Self::Plus(start, offset) => Self::Plus(start, offset.checked_add(n)?),
            Self::Through(base, offset, after) => {
                Self::Through(base, offset, after.checked_add(n)?)
            }
        })
    }
}

struct Symbols<'a, 'b> {
    pc: usize,
    frames: &'a EhFrame<Bytes<'b>>,
    numbers: &'a Numbers,
}

impl Symbols<'_, '_> {
    fn run(&self, expression: &UnwindExpression<usize>, first: Option<Symbol>) -> Option<Symbol> {
        let encoding =
            gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut stack = Stack { values: [Symbol::Number(0); 8], height: 0 };
        if let Some(first) = first {
            stack.push(first)?;
        }
        let expression = expression.get(self.frames).ok()?;
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next().ok()? {
            let value = match operation {
                Operation::RegisterOffset { register, offset, .. } => {
                    self.register(register, offset)?
                }
                Operation::UnsignedConstant { value } => Symbol::Number(value as i64),
                Operation::SignedConstant { value } => Symbol::Number(value),
                Operation::PlusConstant { value } => stack.pop()?.plus(value as i64)?,
                Operation::Deref { size: 8, space: false, .. } => match stack.pop()? {
                    Symbol::Plus(Start::Base(base), offset) => Symbol::Through(base, offset, 0),
                    _ => return None,
                },
                Operation::Plus => match (stack.pop()?, stack.pop()?) {
                    (Symbol::Number(n), other) | (other, Symbol::Number(n)) => other.plus(n)?,
                    _ => return None,
                },
                // Procedure linkage tables use this to find the address's offset in an entry.
                Operation::And => stack.numbers(|a, b| a & b)?,
                Operation::Ge => stack.numbers(|a, b| i64::from(a >= b))?,
                Operation::Shl => {
                    stack.numbers(|a, b| a.checked_shl(b.try_into().unwrap_or(64)).unwrap_or(0))?
                }
                Operation::Minus => stack.numbers(i64::wrapping_sub)?,
                Operation::Nop => continue,
                _ => return None,
            };
            stack.push(value)?;
        }
        stack.pop()
    }

    fn register(&self, register: Register, offset: i64) -> Option<Symbol> {
        // x86-64 uses the return address's column for the program counter.
        if register == self.numbers.sp {
            Some(Symbol::Plus(Start::Base(Base::Sp), offset))
        } else if register == self.numbers.fp {
            Some(Symbol::Plus(Start::Base(Base::Fp), offset))
        } else if register == self.numbers.return_address && !self.numbers.has_link_register {
            Some(Symbol::Number((self.pc as i64).wrapping_add(offset)))
        } else {
            None
        }
    }
}

struct Stack {
    values: [Symbol; 8],
    height: usize,
}

impl Stack {
    fn push(&mut self, value: Symbol) -> Option<()> {
        *self.values.get_mut(self.height)? = value;
        self.height += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<Symbol> {
        self.height = self.height.checked_sub(1)?;
        Some(self.values[self.height])
    }

    /// Applies an operation to two numbers, the second on top.
    fn numbers(&mut self, operation: impl Fn(i64, i64) -> i64) -> Option<Symbol> {
        match (self.pop()?, self.pop()?) {
            (Symbol::Number(b), Symbol::Number(a)) => Some(Symbol::Number(operation(a, b))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    const HEADER: usize = 0x1000;
    const FRAMES: usize = 0x2000;
    const CODE: usize = 0x3000;

    /// Returns a module of one function of 0x100 bytes at [`CODE`]: its header, and its CIE and FDE
    /// with these programs.
    fn module(augmentation: &[u8], column: u8, shared: &[u8], own: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let pad = |mut body: Vec<u8>| {
            while body.len() % 8 != 4 {
                body.push(0); // DW_CFA_nop
            }
            let mut whole = (body.len() as u32).to_ne_bytes().to_vec();
            whole.append(&mut body);
            whole
        };
        let mut cie = std::vec![0, 0, 0, 0, 1];
        cie.extend_from_slice(augmentation);
        cie.extend_from_slice(&[0, 1, 0x78, column, 1, PC_RELATIVE_4]);
        cie.extend_from_slice(shared);
        let mut frames = pad(cie);
        let entry = frames.len();
        let mut fde = ((entry + 4) as u32).to_ne_bytes().to_vec();
        fde.extend_from_slice(&((CODE - FRAMES - entry - 8) as u32).to_ne_bytes());
        fde.extend_from_slice(&0x100u32.to_ne_bytes());
        fde.push(0);
        fde.extend_from_slice(own);
        frames.append(&mut pad(fde));
        frames.extend_from_slice(&[0; 4]);
        let mut header = std::vec![1, PC_RELATIVE_4, UNSIGNED_4, HEADER_RELATIVE_4];
        header.extend_from_slice(&((FRAMES - HEADER - 4) as u32).to_ne_bytes());
        header.extend_from_slice(&1u32.to_ne_bytes());
        header.extend_from_slice(&((CODE - HEADER) as u32).to_ne_bytes());
        header.extend_from_slice(&((FRAMES + entry - HEADER) as u32).to_ne_bytes());
        (header, frames)
    }

    fn ask(pc: usize, header: &[u8], frames: &[u8], numbers: &Numbers) -> Rule {
        let section = Section { address: FRAMES, bytes: frames };
        let find = |at: usize| (FRAMES..FRAMES + frames.len()).contains(&at).then_some(section);
        let header = Section { address: HEADER, bytes: header };
        let rule = rule_at(pc, header, find, &mut Context::new_in(), numbers);
        // The quick reader and gimli agree wherever gimli can read the entry.
        if let Some(entry) = entry_of(pc, header).filter(|&entry| find(entry).is_some()) {
            let slow = rule_of(pc, entry, section, &mut Context::new_in(), numbers);
            assert!(rule == slow || slow == Rule::UNKNOWN, "{rule:?} {slow:?}");
        }
        rule
    }

    /// `CFA = rsp + 8`, the return address at `CFA - 8`.
    const AT_ENTRY: &[u8] = &[0x0c, 7, 8, 0x90, 1];

    fn x86(own: &[u8], pc: usize) -> Rule {
        let (header, frames) = module(b"zR", 16, AT_ENTRY, own);
        ask(pc, &header, &frames, &X86_64)
    }

    fn at_sp(offset: i64) -> Cfa {
        Cfa::At { base: Base::Sp, offset }
    }

    #[test]
    fn rows_follow_a_function() {
        // push rbp at 1; mov rbp, rsp at 4
        let own = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
        let back = Return::Saved(-8);
        assert_eq!(x86(&own, CODE), Rule::of_frame(at_sp(8), back, Frame::Same));
        let saved = Frame::AtCfa(-16);
        assert_eq!(x86(&own, CODE + 1), Rule::of_frame(at_sp(16), back, saved));
        let by_fp = Cfa::At { base: Base::Fp, offset: 16 };
        assert_eq!(x86(&own, CODE + 0xff), Rule::of_frame(by_fp, back, saved));
        assert_eq!(x86(&own, CODE + 0x100), Rule::BY_FRAME_POINTER);
        assert_eq!(x86(&own, CODE - 1), Rule::BY_FRAME_POINTER);
    }

    #[test]
    fn a_realigned_stack_is_read_through_its_frame_pointer() {
        // CFA = *(rbp - 8); rbp is saved at rbp + 0
        let own = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
        let cfa = Cfa::Through { base: Base::Fp, offset: -8, after: 0 };
        let expected = Rule::of_frame(cfa, Return::Saved(-8), Frame::AtFp(0));
        assert_eq!(x86(&own, CODE), expected);
        // CFA = *(rsp + 40) + 8, as hand-written code has it
        let own = [0x0f, 5, 0x77, 40, 0x06, 0x23, 8];
        let cfa = Cfa::Through { base: Base::Sp, offset: 40, after: 8 };
        assert_eq!(x86(&own, CODE), Rule::of_frame(cfa, Return::Saved(-8), Frame::Same));
    }

    #[test]
    fn entries_of_the_procedure_linkage_table_know_how_far_they_are() {
        // CFA = rsp + 8 + ((rip & 15) >= 11) << 3
        let own = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(x86(&own, CODE + 10), Rule::of_frame(at_sp(8), Return::Saved(-8), Frame::Same));
        assert_eq!(x86(&own, CODE + 11), Rule::of_frame(at_sp(16), Return::Saved(-8), Frame::Same));
    }

    #[test]
    fn ends_and_signal_frames_are_seen() {
        assert_eq!(x86(&[0x07, 16], CODE), Rule::END);
        let (header, frames) = module(b"zRS", 16, AT_ENTRY, &[]);
        assert_eq!(ask(CODE, &header, &frames, &X86_64), Rule::SIGNAL);
        // CFA = rbx + 16: a register that a walk does not follow.
        assert_eq!(x86(&[0x0c, 3, 16], CODE), Rule::UNKNOWN);
    }

    #[test]
    fn a_link_register_holds_what_was_not_saved() {
        // stp x29, x30, [sp, #-32]! at 4, after pointer authentication
        let own = [0x2d, 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3];
        let (header, frames) = module(b"zR", 30, &[0x0c, 31, 0], &own);
        let ask = |pc| ask(pc, &header, &frames, &AARCH64);
        assert_eq!(ask(CODE), Rule::of_frame(at_sp(0), Return::Link, Frame::Same));
        let saved = Rule::of_frame(at_sp(32), Return::Saved(-24), Frame::AtCfa(-32));
        assert_eq!(ask(CODE + 8), saved);
    }

    #[test]
    fn a_function_across_the_end_of_all_addresses_is_none() {
        let (_, mut frames) = module(b"zR", 16, AT_ENTRY, &[]);
        let entry = 4 + u32::from_ne_bytes(frames[..4].try_into().unwrap()) as usize;
        let start = (4 + FRAMES + entry + 8) as u32;
        frames[entry + 8..][..4].copy_from_slice(&start.wrapping_neg().to_ne_bytes());
        let section = Section { address: FRAMES, bytes: &frames };
        for pc in [0, 0xf0] {
            assert_eq!(quick::rule_of(pc, FRAMES + entry, section, &X86_64), None);
        }
        let before = quick::rule_of(usize::MAX - 3, FRAMES + entry, section, &X86_64);
        assert_eq!(before, Some(Rule::of_frame(at_sp(8), Return::Saved(-8), Frame::Same)));
    }

    #[test]
    fn the_entry_before_an_address_is_found() {
        let mut header = std::vec![1, PC_RELATIVE_4, UNSIGNED_4, HEADER_RELATIVE_4, 0, 0, 0, 0];
        header.extend_from_slice(&100u32.to_ne_bytes());
        for n in 0..100u32 {
            header.extend_from_slice(&(n * 16).to_ne_bytes());
            header.extend_from_slice(&(n * 1000).to_ne_bytes());
        }
        let find = |pc| entry_of(pc, Section { address: HEADER, bytes: &header });
        assert_eq!(find(HEADER - 1), None);
        for n in 0..100 {
            assert_eq!(find(HEADER + n * 16), Some(HEADER + n * 1000));
            assert_eq!(find(HEADER + n * 16 + 15), Some(HEADER + n * 1000));
        }
        header.pop();
        assert_eq!(entry_of(HEADER, Section { address: HEADER, bytes: &header }), None);
    }

    proptest! {
        #![proptest_config(cases(3000))]

        #[test]
        fn any_program_is_survived(
            shared in prop::collection::vec(any::<u8>(), 0..24),
            own in prop::collection::vec(any::<u8>(), 0..48),
            pc in 0usize..0x100,
        ) {
            for numbers in [X86_64, AARCH64] {
                let column = numbers.return_address.0 as u8;
                let (header, frames) = module(b"zR", column, &shared, &own);
                ask(CODE + pc, &header, &frames, &numbers);
            }
        }

        #[test]
        fn damaged_tables_are_survived(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
            pc in 0usize..0x100,
        ) {
            let own = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0f, 3, 0x76, 0x78, 0x06];
            let (mut header, mut frames) = module(b"zR", 16, AT_ENTRY, &own);
            for (at, byte) in damage {
                let at = at.index(header.len() + frames.len());
                match at.checked_sub(header.len()) {
                    Some(at) => frames[at] = byte,
                    None => header[at] = byte,
                }
            }
            ask(CODE + pc, &header, &frames, &X86_64);
            frames.truncate(cut.index(frames.len()));
            ask(CODE + pc, &header, &frames, &X86_64);
        }

        #[test]
        fn any_bytes_are_survived(
            header in prop::collection::vec(any::<u8>(), 0..64),
            frames in prop::collection::vec(any::<u8>(), 0..128),
            entry in 0usize..160,
        ) {
            let section = Section { address: FRAMES, bytes: &frames };
            entry_of(CODE, Section { address: HEADER, bytes: &header });
            rule_of(CODE, FRAMES + entry, section, &mut Context::new_in(), &X86_64);
        }
    }
}
