//! The tests of a tuple's elements in a receive, read from the code after its first test of a
//! message.
//!
//! A receive that walks a long queue rejects most messages. If it rejects them by their elements,
//! that is found out here without running its code. Every message that the code accepts passes
//! here, and few others; the code itself tests each message that passes.

use super::instr;
use super::operands::{C, Dest, X, Y};
use crate::code;
use crate::cx::Cx;
use purlin_isa::ops::{Form, Op};
use purlin_kernel::message::index::{self, Sought};
use purlin_term::Term;
use purlin_term::layout::TUPLE_FIRST;
use purlin_term::word::header_arity;

/// Maximum number of elements that are tested.
const MOST_ELEMENTS: usize = 4;
/// Maximum number of registers that are tracked.
const REGISTERS: usize = 8;

/// Returns the number of a variant, with which instructions begin.
pub(super) const fn number(op: Op, forms: &[Form]) -> u16 {
    match op.variant(forms) {
        Some(n) => n,
        None => panic!("the row has no such variant"),
    }
}

const ELEMENT: u16 = number(Op::GetTupleElement, &[Form::X, Form::H, Form::X]);
const TWO_ELEMENTS: u16 = number(Op::GetTupleElements2, &[Form::X, Form::H, Form::X, Form::X]);
pub(super) const EQ_IMMED: u16 = number(Op::IsEqImmed, &[Form::L, Form::X, Form::Q]);
/// Compares a register with a constant.
pub(super) const EQ_CONSTANT: u16 = number(Op::IsEqExact, &[Form::L, Form::X, Form::C]);
const EQ_STACK: u16 = number(Op::IsEqExact, &[Form::L, Form::X, Form::Y]);
const EQ_STACK_FIRST: u16 = number(Op::IsEqExact, &[Form::L, Form::Y, Form::X]);
pub(super) const TAGGED: u16 = number(Op::IsTaggedTuple, &[Form::L, Form::X, Form::Q, Form::Q]);

/// The test of an element.
#[derive(Clone, Copy)]
enum Wanted {
    /// This word.
    Word(Term),
    /// A reference with those words.
    Reference([u64; 3]),
    /// A tuple with that header.
    Tuple(u64),
    /// A tuple with that header and that first element.
    Tagged(u64, Term),
}

impl Wanted {
    /// Returns what is exactly equal to `t`; `None` if that is left to the code.
    fn equal_to(t: Term) -> Option<Wanted> {
        if t.is_immed() {
            return Some(Wanted::Word(t));
        }
        if t.as_tuple().is_some_and(|c| !c.is_empty()) {
            // SAFETY: a tuple has a header.
            return Some(Wanted::Tuple(unsafe { (*t.ptr()).raw() }));
        }
        t.plain_ref().map(Wanted::Reference)
    }
    /// # Safety
    /// `t` must be a term that can be read in place.
    #[inline(always)]
    unsafe fn passes(self, t: Term) -> bool {
        match self {
            Wanted::Word(w) => t == w,
            // References of other kinds may be equal to a plain one: the code decides.
            Wanted::Reference(w) => t.is_boxed() && t.plain_ref().is_none_or(|r| r == w),
            Wanted::Tuple(w) => t.is_boxed() && (*t.ptr()).raw() == w,
            Wanted::Tagged(w, tag) => {
                t.is_boxed() && (*t.ptr()).raw() == w && *t.ptr().add(TUPLE_FIRST) == tag
            }
        }
    }
}

/// The tests of elements. See the head of this module.
pub(super) struct Elements {
    /// Words from the header of the tuple to the element, and its test.
    tests: [(usize, Wanted); MOST_ELEMENTS],
    count: usize,
}

impl Elements {
    /// Collects the tests from `pc` on of a tuple with that header in register `message`, as long
    /// as they lead to `end` if they fail and are of a known kind.
    ///
    /// # Safety
    /// `pc` must be an instruction that follows a test for that header without a jump; the receive
    /// must run in `cx`, with its stack at `e`.
    pub unsafe fn of(
        cx: *mut Cx,
        e: *mut Term,
        mut pc: *const u64,
        message: Dest,
        end: *const u64,
        header: u64,
    ) -> Elements {
        let mut all = Elements {
            tests: [(0, Wanted::Word(Term::small(0))); MOST_ELEMENTS],
            count: 0,
        };
        let mut registers = Registers::default();
        // An element may overwrite the register of the message itself.
        let mut there = true;
        while all.count < MOST_ELEMENTS {
            let (register, wanted, fail, next) = match code::opcode_at(pc) {
                ELEMENT => {
                    let op = instr::GetTupleElement::<X, X>::at(pc);
                    let to = op.dst().dest();
                    if !there || op.src().dest() != message || !registers.set(to, op.offset()) {
                        break;
                    }
                    there = to != message;
                    pc = op.next();
                    continue;
                }
                TWO_ELEMENTS => {
                    let op = instr::GetTupleElements2::<X, X, X>::at(pc);
                    let (a, b, at) = (op.dst().dest(), op.dst2().dest(), op.offset());
                    if !there
                        || op.src().dest() != message
                        || !registers.set(a, at)
                        || !registers.set(b, at + size_of::<Term>())
                    {
                        break;
                    }
                    there = a != message && b != message;
                    pc = op.next();
                    continue;
                }
                EQ_IMMED => {
                    let op = instr::IsEqImmed::<X>::at(pc);
                    let wanted = Some(Wanted::Word(op.immed()));
                    (op.src().dest(), wanted, op.fail(), op.next())
                }
                EQ_CONSTANT => {
                    let op = instr::IsEqExact::<X, C>::at(pc);
                    let wanted = Wanted::equal_to(op.b().get(cx, e));
                    (op.a().dest(), wanted, op.fail(), op.next())
                }
                EQ_STACK => {
                    let op = instr::IsEqExact::<X, Y>::at(pc);
                    let wanted = Wanted::equal_to(op.b().get(cx, e));
                    (op.a().dest(), wanted, op.fail(), op.next())
                }
                EQ_STACK_FIRST => {
                    let op = instr::IsEqExact::<Y, X>::at(pc);
                    let wanted = Wanted::equal_to(op.a().get(cx, e));
                    (op.b().dest(), wanted, op.fail(), op.next())
                }
                TAGGED => {
                    let op = instr::IsTaggedTuple::<X>::at(pc);
                    let wanted = Some(Wanted::Tagged(op.header(), op.tag()));
                    (op.src().dest(), wanted, op.fail(), op.next())
                }
                _ => break,
            };
            let Some(offset) = registers.get(register).filter(|_| fail.to() == end) else {
                break;
            };
            let at = offset / size_of::<Term>();
            // Code that reads beyond the tuple is not followed further.
            if at < TUPLE_FIRST || at >= TUPLE_FIRST + header_arity(header) {
                break;
            }
            if let Some(w) = wanted {
                all.tests[all.count] = (at, w);
                all.count += 1;
            }
            pc = next;
        }
        all
    }
    /// Returns what the receive looks for in tuples with that header, if one test decides most: the
    /// first element that equals a reference, or else the first that equals another value.
    pub fn sought(&self, header: u64) -> Option<Sought> {
        let tests = || self.tests[..self.count].iter();
        let reference = tests().find_map(|&(at, w)| match w {
            Wanted::Reference(words) => Some((at, index::key_of_reference(words))),
            _ => None,
        });
        let word = || {
            tests().find_map(|&(at, w)| match w {
                Wanted::Word(t) => Some((at, index::key_of_word(t))),
                _ => None,
            })
        };
        let (at, key) = reference.or_else(word)?;
        Some(Sought { header, at, key })
    }
    /// Whether the code may accept `t`.
    ///
    /// # Safety
    /// `t` must be a tuple with the given header, which can be read in place.
    #[inline(always)]
    pub unsafe fn pass(&self, t: Term) -> bool {
        let p = t.ptr();
        self.tests[..self.count]
            .iter()
            .all(|&(at, w)| w.passes(*p.add(at)))
    }
}

/// The registers that hold elements of the message, and the offset of each element in bytes.
#[derive(Default)]
struct Registers {
    all: [Option<(Dest, usize)>; REGISTERS],
}

impl Registers {
    /// Records that the register holds that element; returns false if there are too many registers.
    fn set(&mut self, register: Dest, offset: usize) -> bool {
        let there = self
            .all
            .iter()
            .position(|r| r.is_none_or(|(d, _)| d == register));
        if let Some(i) = there {
            self.all[i] = Some((register, offset));
        }
        there.is_some()
    }
    fn get(&self, register: Dest) -> Option<usize> {
        let mut held = self.all.iter().flatten();
        held.find(|(d, _)| *d == register).map(|(_, at)| *at)
    }
}
