//! Checks each instruction against its row: effects, registers, heap, stack, and what runs next.
//! Only in builds with debug assertions, where processes run step by step. It does not see what
//! machine code does, so use `PURLIN_JIT=off`.

use crate::code;
use crate::cx::Cx;
use purlin_isa::codec::{Instruction, Value};
use purlin_isa::contract::{Makes, Stack, Xs};
use purlin_isa::ops::{List, Op, Role, SpecOp, lookup, words};
use purlin_term::Term;

/// Number of X registers that are compared.
const COMPARED: usize = 32;

/// The state before an instruction ran.
pub(crate) struct Before {
    pc: *const u64,
    number: u16,
    collections: u32,
    x: [Term; COMPARED],
    e: *mut Term,
    hp: *mut Term,
}

/// Decodes the instruction at `pc`, taking it for the variant `number`.
///
/// # Safety
/// There must be a whole instruction.
unsafe fn instruction<'a>(pc: *const u64, number: u16) -> Option<Instruction<'a>> {
    let (row, variant) = lookup(number)?;
    let forms = row.forms(variant);
    // The count of a list is the last operand.
    let count = match (row.list, forms.last()) {
        (Some(list), Some(last)) => {
            let end = 1 + forms.iter().map(|f| f.units()).sum::<usize>();
            let at = (pc as *const u16).add(end - last.units());
            let n = (0..last.units()).fold(0, |n, k| n | usize::from(*at.add(k)) << (16 * k));
            List::words(list, n)
        }
        _ => 0,
    };
    let all = std::slice::from_raw_parts(pc, words(&forms) + count);
    Instruction::of(all, 0, number)
}

impl Before {
    /// # Safety
    /// As for running the instruction at `pc`.
    pub unsafe fn of(cx: &Cx, pc: *const u64) -> Before {
        Before {
            pc,
            number: code::fetch(pc),
            collections: cx.heap.collections,
            x: std::array::from_fn(|i| cx.x[i]),
            e: cx.heap.stop,
            hp: cx.heap.htop,
        }
    }

    /// Returns what an instruction has done although its row doesn't say so. `next` is its result.
    ///
    /// # Safety
    /// The instruction must have run just now, and its code must still be there.
    pub unsafe fn broken(&self, cx: &Cx, next: *const u64) -> Result<(), String> {
        let Some((row, _)) = lookup(self.number) else {
            return Ok(());
        };
        let may = row.effects;
        let collected = cx.heap.collections != self.collections;
        let (raised, left) = (cx.interp.raised, next.is_null());
        hold(may.collects || !collected, || {
            format!("{} collected", row.name)
        })?;
        hold(may.fails || !raised, || format!("{} raised", row.name))?;
        hold(may.yields || raised || !left, || {
            format!("{} left with {:?}", row.name, cx.interp.exit)
        })?;
        // A breakpoint runs the instruction that it replaces. After a native the process may
        // continue in other code, with any registers.
        let elsewhere = may.calls && may.fails || Op::of(self.number) == Some(Op::Breakpoint);
        if collected || raised || left || elsewhere {
            return Ok(());
        }
        let Some(i) = instruction(self.pc, self.number) else {
            return Err(format!("{} can't be read", row.name));
        };
        self.registers(cx, &i)?;
        self.rest(cx, &i, next)
    }

    /// Checks that it has written the X registers that its row names, and no others.
    fn registers(&self, cx: &Cx, i: &Instruction) -> Result<(), String> {
        let row = i.row();
        let listed = i.members().map_or_else(Vec::new, |m| m.writes());
        for (k, old) in self.x.iter().enumerate() {
            if cx.x[k] == *old {
                continue;
            }
            let x = Value::X(k as u32);
            let named = i.parts().any(|(op, operands)| {
                let row = op.row();
                let written = |role| matches!(role, Role::Written | Role::Changed);
                let mut all = row.operands.iter().zip(&operands[..]);
                all.any(|(o, &v)| v == x && written(o.kind.role()))
                    // In stress mode, registers that it may lose are forgotten.
                    || row.contract.keeps.is_some_and(|n| k >= n.into())
                    || match row.contract.writes {
                        Xs::All => true,
                        Xs::First(n) => k < n.into(),
                        _ => false,
                    }
            });
            hold(named || listed.contains(&x), || {
                format!("{} wrote x{k}", row.name)
            })?;
        }
        Ok(())
    }

    /// Checks heap, stack, and what runs next.
    ///
    /// # Safety
    /// `pc` must be an instruction of the code that ran, or of any other.
    unsafe fn rest(&self, cx: &Cx, i: &Instruction, pc: *const u64) -> Result<(), String> {
        let (e, hp) = (cx.heap.stop, cx.heap.htop);
        let row = i.row();
        // It has made the room that it needs, and runs again.
        if pc == self.pc && row.effects.collects {
            return Ok(());
        }
        let number = |name, operands: &[Value], of: &SpecOp| {
            of.named(name).map_or(0, |k| operands[k].word() as isize)
        };
        // The words that the parts make, and how far the top of the stack moves.
        let (mut least, mut made, mut most, mut moved) = (0, 0, false, Some(0));
        let mut returns = false;
        for (op, operands) in i.parts() {
            let row = op.row();
            let frame = row.frame().map_or(0, |k| operands[k].word() as isize);
            made += match row.contract.makes {
                Makes::Nothing => 0,
                Makes::Words(n) => n.into(),
                Makes::List(n) => number("count", &operands, row) + isize::from(n),
                Makes::Size(n) => {
                    most = true;
                    number("size", &operands, row) + isize::from(n)
                }
                Makes::Rest => {
                    most = true;
                    isize::MAX / 2
                }
                Makes::Back => {
                    (most, least) = (true, isize::MIN);
                    0
                }
            };
            moved = match row.contract.stack {
                Stack::Same => moved,
                Stack::Push => moved.map(|m| m - frame - 1),
                Stack::Pop => moved.map(|m| m + frame + 1),
                Stack::Trim => moved.map(|m| m + frame),
                Stack::Other => None,
            };
            returns |= op == Op::Return || row.effects.calls || moved.is_none();
        }
        if !row.effects.collects {
            let n = hp.offset_from(self.hp);
            let right = if most {
                (least..=made).contains(&n)
            } else {
                n == made
            };
            hold(right, || {
                format!("{} took {n} words of the heap, not {made}", row.name)
            })?;
        }
        if let Some(m) = moved {
            let n = e.offset_from(self.e);
            hold(n == m, || {
                format!("{} moved the stack by {n} words, not {m}", row.name)
            })?;
        }
        if returns {
            return Ok(());
        }
        let to = pc.offset_from(self.pc);
        let words = i.words as isize;
        let skips = row
            .contract
            .skips
            .map(|op| words + op.row().words() as isize);
        let labels = i.members().map_or_else(Vec::new, |m| m.labels());
        let label = |v: &Value| matches!(v, Value::L(l) if *l != 0 && *l as isize == to);
        let known = to == words && !row.effects.ends
            || Some(to) == skips
            || i.operands.iter().any(label)
            || labels.iter().any(|&l| l as isize == to);
        hold(known, || format!("{} went on {to} words from it", row.name))
    }
}

fn hold(so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if so { Ok(()) } else { Err(what()) }
}

#[cfg(test)]
mod tests {
    use crate::cx::{Cx, Exit};
    use crate::dispatch::{STEP, run_table};
    use crate::handler::Step;
    use purlin_isa::codec::{Value, packed};
    use purlin_isa::ops::{Op, VARIANTS};
    use purlin_term::Term;

    /// Runs `op` and then the end of the process, with `instead` as the step of `op` if there is
    /// one.
    fn run(op: Op, operands: &[Value], instead: Option<Step>) -> Exit {
        let mut words = packed(op, operands).expect("operands that fit");
        words.extend(packed(Op::ProcessExit, &[]).expect("no operands"));
        let mut table: [Step; VARIANTS] = STEP;
        if let Some(step) = instead {
            table[usize::from(words[0] as u16)] = step;
        }
        let mut cx: Box<Cx> = Cx::boxed(0);
        for (i, x) in cx.x.iter_mut().enumerate() {
            *x = Term::small(i as i64);
        }
        // SAFETY: registers hold immediates, and an empty stack is valid for code without frames.
        unsafe {
            purlin_term::gc::collect(&mut cx.heap, 100, &mut [], false);
            cx.reds = 100;
            run_table(&mut *cx, words.as_ptr(), &table)
        }
    }
    /// Runs `op` with a faulty step and expects the fault to be found.
    fn finds(op: Op, operands: &[Value], step: Step, what: &str) {
        let found = std::panic::catch_unwind(|| run(op, operands, Some(step)));
        let fault = found.expect_err("the deviation is not found");
        let fault = fault.downcast_ref::<String>().map_or("", |s| s);
        assert!(fault.contains(what), "{fault}");
    }
    /// Runs the instruction at `pc` correctly.
    unsafe fn rightly(cx: *mut Cx, pc: *const u64) -> *const u64 {
        STEP[usize::from(*(pc as *const u16))](cx, pc)
    }

    const MOVE: [Value; 2] = [Value::X(3), Value::X(1)];

    #[test]
    fn instructions_keep_to_their_rows() {
        assert_eq!(run(Op::Move, &MOVE, None), Exit::Exited);
        let cons = [Value::X(0), Value::X(1), Value::X(2)];
        assert_eq!(run(Op::PutList, &cons, None), Exit::Exited);
        assert_eq!(
            run(Op::Allocate, &[Value::N(2), Value::N(3)], None),
            Exit::Exited
        );
    }

    #[test]
    fn a_register_that_the_row_does_not_name() {
        unsafe extern "C" fn step(cx: *mut Cx, pc: *const u64) -> *const u64 {
            (*cx).x[2] = Term::small(77);
            rightly(cx, pc)
        }
        finds(Op::Move, &MOVE, step, "move_ wrote x2");
    }

    #[test]
    fn words_of_the_heap_that_the_row_does_not_name() {
        unsafe extern "C" fn step(cx: *mut Cx, pc: *const u64) -> *const u64 {
            (*cx).heap.htop = (*cx).heap.htop.add(1);
            rightly(cx, pc)
        }
        finds(
            Op::Move,
            &MOVE,
            step,
            "move_ took 1 words of the heap, not 0",
        );
        let cons = [Value::X(0), Value::X(1), Value::X(2)];
        finds(
            Op::PutList,
            &cons,
            step,
            "put_list took 3 words of the heap, not 2",
        );
    }

    #[test]
    fn a_frame_that_the_row_does_not_name() {
        unsafe extern "C" fn step(cx: *mut Cx, pc: *const u64) -> *const u64 {
            (*cx).heap.stop = (*cx).heap.stop.sub(1);
            rightly(cx, pc)
        }
        finds(
            Op::Move,
            &MOVE,
            step,
            "move_ moved the stack by -1 words, not 0",
        );
    }

    #[test]
    fn an_instruction_stepped_over_that_the_row_does_not_name() {
        unsafe extern "C" fn step(cx: *mut Cx, pc: *const u64) -> *const u64 {
            rightly(cx, pc).add(1)
        }
        finds(Op::Move, &MOVE, step, "move_ went on 2 words from it");
    }

    #[test]
    fn effects_that_the_row_does_not_name() {
        unsafe extern "C" fn collects(cx: *mut Cx, pc: *const u64) -> *const u64 {
            (*cx).heap.collections += 1;
            rightly(cx, pc)
        }
        finds(Op::Move, &MOVE, collects, "move_ collected");
        unsafe extern "C" fn raises(cx: *mut Cx, pc: *const u64) -> *const u64 {
            (*cx).interp.raised = true;
            rightly(cx, pc)
        }
        finds(Op::Move, &MOVE, raises, "move_ raised");
        unsafe extern "C" fn leaves(cx: *mut Cx, pc: *const u64) -> *const u64 {
            rightly(cx, pc);
            (*cx).interp.exit = Exit::Yield;
            std::ptr::null()
        }
        finds(Op::Move, &MOVE, leaves, "move_ left with Yield");
    }
}
