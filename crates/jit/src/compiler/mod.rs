//! The compiler: one pass over a function, with a template for each instruction.
//!
//! X0 to X5 are in machine registers throughout (see [`stubs`](crate::stubs)); other registers are
//! in memory. Cold parts of templates are placed after the function.
//!
//! # What a template does with cases that it doesn't handle
//! - It *exits*: the interpreter runs the instruction again. Nothing has changed before.
//! - It runs the *step*: the interpreter's handler runs as a function and returns the next
//!   instruction. If this function has code for that, it continues there, otherwise it exits.

use crate::asm::{Code, Label};
use crate::decode::{Instruction, decode, parts};
use crate::machine::Alu::{Add, And, Or, Sub, Xor};
use crate::machine::Shift::{Sar, Shl, Shr};
use crate::machine::Width::{D, Q};
use crate::machine::processors::{A64, X64};
use crate::machine::{
    A, B, CX, Cond, E, HP, K, Machine, Mem, Operands, Processor, R, REDS, Reg, X_REGS, at, boxed,
    cons, indexed, new,
};
use crate::operands::{self, *};
use crate::ranges::{Range, Ranges};
use crate::{BIF_STUBS, Env, FUN_STUBS, Template, chaos};
use purlin_isa::helpers::{Full, Leaf, Room};
use purlin_isa::ops::{Kind, MachineCode, Op};
use purlin_term::fun::LEAD_CODE;
use purlin_term::layout::{
    CONS_HEAD, CONS_TAIL, FLATMAP_HEAD_WORDS, FLATMAP_HEADER, FLATMAP_KEYS, FLATMAP_LIMIT,
    FUN_BITS, FUN_TARGET, FUN_WORDS, MATCH_END, MATCH_POSITION,
};
use purlin_term::word::{
    ARITY_SHIFT, KIND_MASK, NIL_WORD, SMALL_SHIFT, SUBTAG_SHIFT, Subtag, TAG_ATOM, TAG_BOXED,
    TAG_LIST, TAG_SMALL, TAG4_MASK, TAG6_MASK, header, is_immed_word as is_immediate,
    is_small_word,
};

mod templates;

/// [`KIND_MASK`], for an instruction that tests a byte.
const HEADER_MASK: u8 = KIND_MASK as u8;
/// Number of the first register that is in memory.
const IN_MEMORY: u16 = X_REGS.len() as u16;
/// Maximum number of arms of a selection that are compared one after another.
const IN_A_ROW: usize = 6;
/// Maximum number of keys of a map that are compared word by word.
const MAP_KEYS_MOST: usize = 8;
/// Maximum number of instructions of a compiled function.
const MOST_INSTRUCTIONS: usize = 20_000;

/// Bytes of machine code for an instruction of bytecode, cold parts included: most functions have
/// fewer.
const BYTES_PER_INSTRUCTION: usize = 48;

/// Length of functions, in words of bytecode, whose machine code is likely to be shorter than the
/// shortest jumps reach.
const NEAR_WORDS: u32 = 500;

/// A function in specific code.
#[derive(Clone, Copy)]
pub struct Function<'a> {
    /// The code of its module, and the address of that code.
    pub code: &'a [u64],
    pub base: u64,
    /// Offsets in words: `func_info`, the instruction after it, the end.
    pub start: u32,
    pub entry: u32,
    pub end: u32,
    pub arity: u32,
}

/// The machine code of a function.
pub struct Object {
    pub code: Code,
    /// Entry of compiled callers: bytes from the start.
    pub outer: u32,
    /// Return points: address in bytecode, and bytes from the start.
    pub returns: Vec<(u64, u32)>,
    /// Start of the machine code of each instruction, and its word; sorted.
    pub places: Vec<(u32, u32)>,
    /// Remarks with the byte where they begin, if they were requested; sorted.
    pub notes: Vec<(u32, Note)>,
}

/// Why a function gets no machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Its entry does not directly follow `func_info`.
    Entry,
    /// It has a word that is no instruction, or too many instructions.
    Instructions,
    /// It calls something that is no entry of a function.
    Target,
    /// It has lines for breakpoints.
    Lines,
    /// Its parts are too far from each other.
    Distance,
}

impl Refusal {
    /// Returns the reason as text.
    pub fn why(self) -> &'static str {
        match self {
            Refusal::Entry => "its entry does not directly follow its head",
            Refusal::Instructions => "it has too many instructions, or an unknown one",
            Refusal::Target => "it calls an address that is not the entry of a function",
            Refusal::Lines => "it has breakpoints at lines",
            Refusal::Distance => "it is too long for jumps within it",
        }
    }
}

/// A part of a template that is placed after the function.
struct Cold<'a, 'e, M> {
    /// The instruction to which it belongs, and when control gets there.
    of: u32,
    when: &'static str,
    make: Box<dyn FnOnce(&mut Gen<'a, 'e, M>) + 'a>,
}

/// A remark on machine code, for its readers.
#[derive(Clone, Debug)]
pub enum Note {
    /// Start of a part of the instruction: op and operands.
    Part(String),
    /// Start of a cold part of the instruction at that word, and when control gets there.
    Cold(u32, &'static str),
}

struct Gen<'a, 'e, M> {
    a: M,
    f: Function<'a>,
    env: &'a Env<'e>,
    /// The label of each word at which an instruction starts.
    labels: Vec<Option<Label>>,
    cold: Vec<Cold<'a, 'e, M>>,
    returns: Vec<(u64, Label)>,
    /// The instruction whose template is being written. Cold parts are written later, when this
    /// field names another one.
    whole: &'a Instruction<'a>,
    /// The part of it, likewise.
    part: &'a Instruction<'a>,
    /// Where the cold part of the template comes back to.
    pending: Option<Label>,
    refused: Option<Refusal>,
    /// Where the entry leads if the time slice ends.
    used_up: Label,
    notes: Vec<(u32, Note)>,
    /// Exception handlers.
    handlers: Vec<u32>,
    /// Bit set of the float registers that are in vector registers.
    floats: u64,
    /// Number of key lookups in maps so far, for their hints.
    hints: u64,
    /// Each `loop_rec` so far: where it is, whether messages may be gone past without running code,
    /// and the label where R has the mailbox and B a message to look at.
    looks: Vec<(u32, bool, Label)>,
    /// The known ranges of registers. They are others when cold parts are made.
    ranges: Ranges,
}

/// Whether other code jumps to the instructions of the function: a flag for each word.
fn targets(f: &Function, instructions: &[Instruction]) -> Vec<bool> {
    let mut to = vec![false; (f.end - f.start) as usize + 1];
    let mut set = |at: u32| {
        if let Some(t) = at.checked_sub(f.start).and_then(|k| to.get_mut(k as usize)) {
            *t = true;
        }
    };
    for i in instructions {
        i.labels().for_each(&mut set);
        if let Some(over) = over(f, i) {
            set(over);
        }
        if i.op.row().effects.calls {
            set(i.next);
        }
        // Any word of a list that may be an offset counts as one.
        for &w in i.list {
            if let Some(at) = i.place_of(w) {
                set(at);
            }
        }
    }
    to
}

/// Compiles a function.
///
/// # Errors
/// The reason why the function stays interpreted.
pub fn compile(f: Function, env: &Env) -> Result<Object, Refusal> {
    compile_for(Processor::HOST, f, env)
}

/// Compiles a function for a processor; stubs and helpers in `env` are those of that processor.
///
/// # Errors
/// The reason why the function stays interpreted.
pub fn compile_for(processor: Processor, f: Function, env: &Env) -> Result<Object, Refusal> {
    match processor {
        Processor::X64 => compiled::<X64>(f, env),
        Processor::A64 => compiled::<A64>(f, env),
    }
}

fn compiled<M: Machine>(f: Function, env: &Env) -> Result<Object, Refusal> {
    // Short jumps first, if they are likely to reach.
    if f.end - f.start < NEAR_WORDS {
        match attempt::<M>(f, env, true) {
            Err(Refusal::Distance) => {}
            made => return made,
        }
    }
    attempt::<M>(f, env, false)
}

/// Decodes the instructions of a function.
fn decoded<'a>(f: &Function<'a>) -> Result<Vec<Instruction<'a>>, Refusal> {
    let info = decode_at(f, f.start).ok_or(Refusal::Instructions)?;
    if info.op != Op::FuncInfo || info.next != f.entry {
        return Err(Refusal::Entry);
    }
    let mut instructions = Vec::with_capacity((f.end - f.entry) as usize / 2);
    let mut at = f.entry;
    while at < f.end {
        let i = decode_at(f, at).ok_or(Refusal::Instructions)?;
        if i.next > f.end || instructions.len() >= MOST_INSTRUCTIONS {
            return Err(Refusal::Instructions);
        }
        if i.op.row().machine_code == MachineCode::refuses {
            return Err(Refusal::Lines);
        }
        at = i.next;
        instructions.push(i);
    }
    Ok(instructions)
}

fn attempt<M: Machine>(f: Function, env: &Env, near: bool) -> Result<Object, Refusal> {
    let instructions = decoded(&f)?;
    // The parts of those that have some, one instruction's behind the other's.
    let mut all_parts = Vec::new();
    instructions.iter().for_each(|i| all_parts.extend(parts(i)));
    let Some(first) = instructions.first() else {
        return Err(Refusal::Instructions);
    };
    let mut all_parts = &all_parts[..];
    let mut a = M::begin(instructions.len() * BYTES_PER_INSTRUCTION, near);
    let used_up = a.label();
    let mut g = Gen {
        a,
        f,
        env,
        labels: vec![None; (f.end - f.start) as usize + 1],
        cold: Vec::new(),
        returns: Vec::new(),
        whole: first,
        part: first,
        pending: None,
        refused: None,
        used_up,
        notes: Vec::new(),
        floats: 0,
        hints: 0,
        looks: Vec::new(),
        ranges: Ranges::new((f.start, f.end), &instructions, |i| over(&f, i)),
        handlers: instructions
            .iter()
            .filter(|i| i.op == Op::Catch)
            .filter_map(|i| Catch::of(i).to.0)
            .collect(),
    };
    let led_to = targets(&f, &instructions);
    for i in &instructions {
        let l = g.a.label();
        g.labels[(i.at - f.start) as usize] = Some(l);
    }
    // Nothing runs after the last instruction; a step that ends there exits.
    let outer = g.a.here();
    debug_assert_eq!(outer, 0);
    g.a.enter_function(used_up);
    debug_assert_eq!(g.a.here(), M::INNER);
    let (entry, arity) = (f.entry, f.arity);
    g.later("the time slice ends", move |g| {
        g.a.bind(used_up);
        let pc = g.pc(entry);
        g.a.mov_i(A, pc);
        g.a.mov_i(R, u64::from(arity));
        let to = g.env.stubs.yields;
        g.a.leave_to(to);
    });
    let mut places = Vec::with_capacity(instructions.len());
    for i in &instructions {
        places.push((g.a.here(), i.at));
        let own;
        (own, all_parts) = all_parts.split_at(parts(i).len());
        g.instruction(i, own, led_to[(i.at - f.start) as usize]);
    }
    // The code of a function never runs into the bytes after it.
    g.a.trap();
    while !g.cold.is_empty() {
        for c in std::mem::take(&mut g.cold) {
            if env.annotated {
                g.notes.push((g.a.here(), Note::Cold(c.of, c.when)));
            }
            (c.make)(&mut g);
        }
    }
    if let Some(r) = g.refused {
        return Err(r);
    }
    let mut returns = Vec::with_capacity(g.returns.len());
    for &(pc, l) in &g.returns {
        returns.push((pc, g.a.offset(l).ok_or(Refusal::Instructions)?));
    }
    let notes = g.notes;
    let code = g.a.finish().ok_or(Refusal::Distance)?;
    Ok(Object {
        code,
        outer,
        returns,
        places,
        notes,
    })
}

impl<'a, M: Machine> Gen<'a, '_, M> {
    /// Writes the code of an instruction. `own`: its parts; an op with a step of its own has none.
    /// `led_to`: whether a jump leads here.
    fn instruction(&mut self, i: &'a Instruction<'a>, own: &'a [Instruction<'a>], led_to: bool) {
        if let Some(l) = self.label_at(i.at) {
            self.a.bind(l);
        }
        self.whole = i;
        if !is_float(i.op) || led_to {
            self.floats = 0;
        }
        if self.floats == 0 {
            self.by_chance();
        }
        let list = match own {
            [] => std::slice::from_ref(i),
            own => own,
        };
        self.ranges.begin(i.at);
        if self.env.stressed {
            self.check_ranges();
        }
        for p in list {
            if self.env.annotated && list.len() > 1 {
                self.notes.push((self.a.here(), Note::Part(p.to_string())));
            }
            self.template(p);
            self.ranges.after(p, over(&self.f, p));
        }
    }
}

/// Whether an op leaves the known floats as they are: its template knows float registers.
fn is_float(op: Op) -> bool {
    let row = op.row();
    row.machine_code == MachineCode::template && row.operands.iter().any(|o| o.kind == Kind::Float)
}

/// Returns the target of a shortcut that skips the next instruction.
fn over(f: &Function, i: &Instruction) -> Option<u32> {
    i.op.row().contract.skips?;
    decode_at(f, i.next).map(|next| next.next)
}

fn decode_at<'a>(f: &Function<'a>, at: u32) -> Option<Instruction<'a>> {
    let number = *f.code.get(at as usize)? as u16;
    decode(f.code, at, number)
}

/// Returns the size of a frame on the stack in bytes, with slot 0.
fn frame_bytes(Frame(n): Frame) -> i32 {
    (n as i32 + 1) * 8
}
fn y(n: u16) -> Mem {
    at(E, (i32::from(n) + 1) * 8)
}
fn x(n: u16) -> Mem {
    at(CX, i32::from(n) * 8)
}
impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    /// Returns the address of a word of the code.
    fn pc(&self, at: u32) -> u64 {
        self.f.base + u64::from(at) * 8
    }
    fn label_at(&self, at: u32) -> Option<Label> {
        let i = at.checked_sub(self.f.start)? as usize;
        self.labels.get(i).copied().flatten()
    }
    /// Returns the label of a target: an instruction of this function, or an exit.
    fn to(&mut self, l: Target) -> Label {
        match l.0 {
            Some(to) => self.place(to),
            None => self.step_aside(),
        }
    }
    fn place(&mut self, to: u32) -> Label {
        match self.label_at(to) {
            Some(l) => l,
            // `func_info` of this function, or an instruction of another one.
            None => {
                let l = self.a.label();
                let pc = self.pc(to);
                let info = decode_at(&self.f, to).filter(|i| i.op == Op::FuncInfo);
                self.later("to the head of the function, or to another one", move |g| {
                    g.a.bind(l);
                    match info {
                        Some(i) => g.raises(&i),
                        None => g.leave_to(pc),
                    }
                });
                l
            }
        }
    }
    /// Exits to the interpreter at that address.
    fn leave_to(&mut self, pc: u64) {
        self.a.mov_i(A, pc);
        let to = self.env.stubs.exit;
        self.a.leave_to(to);
    }
    /// Makes an exit that leaves the current instruction to the interpreter.
    fn exit(&mut self) -> Label {
        let l = self.a.label();
        let pc = self.pc(self.whole.at);
        self.later("left to the interpreter", move |g| {
            g.a.bind(l);
            g.leave_to(pc);
        });
        l
    }
    /// Makes code that is placed after the function. It is generated after other instructions, so
    /// nothing of the current one holds then but the values that `make` has captured. `when` says
    /// in a few words when control gets there.
    fn later(&mut self, when: &'static str, make: impl FnOnce(&mut Gen<'a, 'e, M>) + 'a) {
        self.cold.push(Cold {
            of: self.whole.at,
            when,
            make: Box::new(make),
        });
    }

    // Operands.

    /// Returns the machine register with the operand, which is loaded into `scratch` if it is in
    /// none.
    fn get(&mut self, a: Src, scratch: Reg) -> Reg {
        match a {
            Src::X(n) if n < IN_MEMORY => return X_REGS[n as usize],
            Src::X(n) => self.a.load(scratch, x(n)),
            Src::Y(n) => self.a.load(scratch, y(n)),
            Src::C(w) => self.a.mov_i(scratch, w),
        }
        scratch
    }
    /// Returns a machine register for a result, before [`Gen::put`] writes it.
    fn dst(&self, a: Dst, scratch: Reg) -> Reg {
        match a {
            Dst::X(n) if n < IN_MEMORY => X_REGS[n as usize],
            _ => scratch,
        }
    }
    fn put(&mut self, a: Dst, r: Reg) {
        match a {
            Dst::X(n) if n < IN_MEMORY => self.a.mov(X_REGS[n as usize], r),
            Dst::X(n) => self.a.store(x(n), r),
            Dst::Y(n) => self.a.store(y(n), r),
        }
    }
    /// The same, after which `r` is undefined.
    fn put_result(&mut self, a: Dst, r: Reg) {
        match a {
            Dst::X(n) if n < IN_MEMORY => self.a.mov_result(X_REGS[n as usize], r),
            _ => self.put(a, r),
        }
    }
    fn put_word(&mut self, a: Dst, w: u64) {
        let mem = match a {
            Dst::X(n) if n < IN_MEMORY => return self.a.mov_i(X_REGS[n as usize], w),
            Dst::X(n) => x(n),
            Dst::Y(n) => y(n),
        };
        self.store_word(mem, w);
    }
    /// `[m] = w`, through `R` if necessary.
    fn store_word(&mut self, m: Mem, w: u64) {
        self.a.store_word(m, w, R);
    }
    fn store_arg(&mut self, m: Mem, a: Src) {
        match a {
            Src::C(w) => self.store_word(m, w),
            _ => {
                let r = self.get(a, R);
                self.a.store(m, r);
            }
        }
    }
    fn mov(&mut self, src: Src, dst: Dst) {
        match src {
            Src::C(w) => self.put_word(dst, w),
            _ => {
                let scratch = self.dst(dst, R);
                let r = self.get(src, scratch);
                self.put(dst, r);
            }
        }
    }
    // Tests of tags. They use `R`.

    fn if_not_small(&mut self, r: Reg, to: Label) {
        self.a.if_not_small(r, R, to);
    }
    fn if_not_boxed(&mut self, r: Reg, to: Label) {
        self.a.if_not_boxed(r, R, to);
    }
    fn if_not_cons(&mut self, r: Reg, to: Label) {
        self.a.if_not_cons(r, R, to);
    }
    /// Jumps if a term is boxed or a cons cell.
    fn if_pointer(&mut self, r: Reg, to: Label) {
        self.a.if_immediate(r, R, false, to);
    }
    fn if_immediate(&mut self, r: Reg, to: Label) {
        self.a.if_immediate(r, R, true, to);
    }
    /// Compares the low bits of the header of a boxed term, which are loaded, with those of a
    /// subtag.
    fn if_subtag(&mut self, c: Cond, r: Reg, s: Subtag, to: Label) {
        self.a.load32(R, boxed(r, 0));
        self.a.alu_i(D, And, R, i32::from(HEADER_MASK));
        self.a.if_i(c, D, R, (s as i32) << SUBTAG_SHIFT, to);
    }
    fn if_not_kind(&mut self, r: Reg, s: Subtag, to: Label) {
        self.if_not_boxed(r, to);
        self.if_subtag(Cond::Ne, r, s, to);
    }
    fn if_not_tuple(&mut self, r: Reg, to: Label) {
        self.if_not_boxed(r, to);
        // Its mark is 0.
        self.a.load32(R, boxed(r, 0));
        self.a.if_bits(Cond::Ne, R, HEADER_MASK, to);
    }
    /// Returns the range of an operand, if it is known to be a small integer.
    fn range(&self, a: Src) -> Option<Range> {
        self.ranges.now().range(a)
    }
    /// Whether an operand is known to be a small integer that is not negative.
    fn is_natural(&self, a: Src) -> bool {
        self.range(a).is_some_and(|r| r.lo >= 0)
    }
    /// Jumps unless the operand, which is in that register, is a small integer.
    fn if_no_small(&mut self, a: Src, r: Reg, to: Label) {
        if self.range(a).is_none() {
            self.if_not_small(r, to);
        }
    }
    /// Traps if a register is outside its range.
    fn check_ranges(&mut self) {
        let all: Vec<(Dst, Range)> = self.ranges.now().all().collect();
        if all.is_empty() {
            return;
        }
        let wrong = self.a.label();
        for (a, range) in all {
            let r = self.get(a.src(), A);
            self.if_not_small(r, wrong);
            for (end, c) in [(range.lo, Cond::L), (range.hi, Cond::G)] {
                self.a
                    .if_word(c, r, ((end as u64) << SMALL_SHIFT) | TAG_SMALL, wrong);
            }
        }
        self.later("a register holds what it must not", move |g| {
            g.a.bind(wrong);
            g.a.trap();
        });
    }
    /// Jumps unless both are small integers. Constant operands are not tested: they are small.
    fn if_not_smalls(&mut self, (a, ra): (Src, Reg), (b, rb): (Src, Reg), to: Label) {
        let known = |g: &Self, a: Src| matches!(a, Src::C(_)) || g.range(a).is_some();
        match (known(self, a), known(self, b)) {
            (true, true) => {}
            (true, false) => self.if_not_small(rb, to),
            (false, true) => self.if_not_small(ra, to),
            _ if ra == rb => self.if_not_small(ra, to),
            _ => {
                self.a.if_not_both_small(ra, rb, to);
            }
        }
    }

    // Exits and helpers.

    /// Returns to the caller. In chaos mode it may return as if the caller were older than the time
    /// slice.
    fn ret(&mut self) {
        let (base, chaos) = (self.env.stubs.base, self.env.fields.chaos);
        if self.env.chaos {
            let dropped = self.a.label();
            chaos::drops(&mut self.a, chaos, dropped);
            self.later("the machine's stack is dropped", move |g| {
                g.a.bind(dropped);
                let bottom = g.env.fields.machine_base;
                g.a.drop_stack(bottom, base);
            });
        }
        self.a.ret();
    }
    /// Begins an instruction. In chaos mode it may exit.
    fn by_chance(&mut self) {
        if self.env.chaos {
            let out = self.exit();
            chaos::leaves(&mut self.a, self.env.stubs.chance, out);
        }
    }

    /// The handler that runs a variant of an op as a step, if there are handlers.
    fn handler(&self, variant: u16) -> Option<Full> {
        self.env.steps.get(usize::from(variant)).copied().map(Full)
    }
    /// Calls a helper with `A`, `R` and `K` as they are; the result is in `R`.
    fn helper(&mut self, Full(function): Full) {
        self.a.mov_i(B, function);
        let to = self.env.stubs.helper;
        self.a.call_stub(to);
    }
    /// The same for a leaf helper, which takes no words of the heap and never collects.
    fn leaf_helper(&mut self, Leaf(function): Leaf) {
        self.a.mov_i(B, function);
        let to = self.env.stubs.leaf_helper;
        self.a.call_stub(to);
    }
    /// Runs the op at `A`, which calls a native with that arity.
    fn bif_helper(&mut self, Full(function): Full, arity: u64) {
        self.a.mov_i(B, function);
        let to = self.env.stubs.bif[(arity as usize).min(BIF_STUBS - 1)];
        self.a.call_stub(to);
    }
    /// Runs the instruction by its handler, as [`Gen::step_of`].
    fn step(&mut self) {
        self.step_of(self.part);
    }
    /// Runs an instruction by its handler. It may continue at its labels in this function, and at
    /// the next instruction.
    fn step_of(&mut self, i: &Instruction) {
        let pc = self.pc(i.at);
        let Some(f) = self.handler(i.variant) else {
            return self.leave_to(pc);
        };
        self.a.mov_i(A, pc);
        // It may have made room, or a match context, and run again.
        let mut places = vec![i.at];
        // Behind the call, an exception leaves more live registers than a value does.
        let mut result = None;
        match i.op {
            Op::CallBif if !self.handlers.contains(&i.next) => {
                // It is run again by the interpreter.
                self.bif_helper(f, CallBif::of(i).arity);
                places.clear();
            }
            // No register holds anything before it, and behind it the message is all there is. In
            // the stress mode the step has made the others hold terms, which are looked at.
            Op::LoopRec if !self.env.stressed => {
                self.bif_helper(f, 0);
                result = match LoopRec::of(i).dst {
                    Dst::X(n) if (1..IN_MEMORY).contains(&n) => Some(n),
                    _ => None,
                };
            }
            _ => self.helper(f),
        }
        places.extend(i.labels());
        places.extend(over(&self.f, i));
        places.retain(|&p| p != i.next);
        places.dedup();
        let out = self.a.label();
        let wanted = self.a.label();
        let next = self.pc(i.next);
        self.a.if_word(Cond::Ne, R, next, out);
        let flag = self.env.fields.gc_wanted;
        self.a.if_byte(Cond::Ne, at(CX, flag), 0, wanted);
        if let Some(n) = result {
            self.a.load(X_REGS[n as usize], x(n));
        }
        let targets: Vec<(u64, Label)> = places
            .into_iter()
            .filter_map(|p| Some((self.pc(p), self.label_at(p)?)))
            .collect();
        self.later("the step leads elsewhere", move |g| {
            g.a.bind(out);
            for (pc, l) in targets {
                g.a.if_word(Cond::E, R, pc, l);
            }
            let to = g.env.stubs.resume;
            g.a.leave_to(to);
            g.a.bind(wanted);
            g.a.mov(X_REGS[0], R);
            let to = g.env.stubs.leave;
            g.a.leave_to(to);
        });
        if i.op.row().effects.calls
            && let Some(l) = self.label_at(i.next)
        {
            self.returns.push((next, l));
        }
    }
    /// Runs the step of an instruction that ends with a return. If it has returned to this
    /// function's caller, the caller continues in machine code. `direct`: only X0 is live after it.
    fn returning_step(&mut self, i: &Instruction, frame: Option<Frame>, arity: u64, direct: bool) {
        let pc = self.pc(i.at);
        let Some(f) = self.handler(i.variant) else {
            return self.leave_to(pc);
        };
        let drop = frame.map_or(0, frame_bytes);
        let next = self.label_at(i.next).map(|l| (self.pc(i.next), l));
        // The target of a native's trap returns to the next instruction.
        if let Some(n) = next {
            self.returns.push(n);
        }
        self.step_and_return(f, arity, drop, Some(pc), next.filter(|_| direct));
    }
    /// Runs the step `f` of an instruction that ends with a return, at `pc` or at `R`. It drops
    /// `drop` bytes of the stack. `next`: where it may continue besides its caller, as an address
    /// in bytecode and in machine code.
    fn step_and_return(
        &mut self,
        f: Full,
        arity: u64,
        drop: i32,
        pc: Option<u64>,
        next: Option<(u64, Label)>,
    ) {
        // The content of the caller's slot, and its address.
        self.a.load(A, at(E, drop));
        self.a.save(A);
        self.a.lea(A, at(E, drop));
        self.a.save(A);
        match pc {
            Some(pc) => self.a.mov_i(A, pc),
            None => self.a.mov(A, R),
        }
        self.bif_helper(f, arity);
        self.a.restore(B);
        self.a.restore(A);
        let out = self.a.label();
        self.a.if_r(Cond::Ne, Q, R, A, out);
        self.a.if_r(Cond::Ne, Q, E, B, out);
        // An exception may lead there too, to the end of a `catch` around the call: then class,
        // reason and trace are in registers that a return does not touch.
        let none = self.env.no_value;
        self.a.if_word(Cond::E, X_REGS[0], none, out);
        // The handler has taken the address out of the slot, where the code that is returned to
        // expects it.
        self.a.store(at(E, 0), A);
        self.ret();
        self.a.bind(out);
        if let Some((pc, l)) = next {
            self.a.if_word(Cond::E, R, pc, l);
        }
        let to = self.env.stubs.resume;
        self.a.leave_to(to);
    }
    /// Runs an instruction that always raises. The exception handler continues in machine code, if
    /// possible.
    fn raises(&mut self, i: &Instruction) {
        let pc = self.pc(i.at);
        let Some(f) = self.handler(i.variant) else {
            return self.leave_to(pc);
        };
        self.a.mov_i(A, pc);
        self.helper(f);
        let to = self.env.stubs.resume;
        self.a.leave_to(to);
    }
    /// Makes room for `words` words, while the first `live` X registers hold terms.
    fn room(&mut self, words: u64, Live(live): Live) {
        let (full, again) = (self.a.label(), self.a.here_label());
        self.a.lea(R, at(HP, words as i32 * 8));
        self.a.if_r(Cond::A, Q, R, E, full);
        // Machine code isn't entered while a collection is wanted, and steps exit then: only in
        // stress mode it may be wanted at any time.
        if self.env.stressed {
            let wanted = self.env.fields.gc_wanted;
            self.a.if_byte(Cond::Ne, at(CX, wanted), 0, full);
        }
        let pc = self.pc(self.whole.at);
        self.later("no room: a collection", move |g| {
            g.a.bind(full);
            g.a.mov_i(A, pc);
            let what = Room {
                words: words as u32,
                live: live as u32,
            };
            g.a.mov_i(R, what.pack());
            let f = g.env.helpers.room;
            g.helper(f);
            g.a.jmp(again);
        });
    }
    /// Stores the return address of a call in the slot of the frame.
    fn push_return(&mut self) {
        let pc = self.pc(self.whole.next);
        self.a.store_word(at(E, 0), pc, A);
    }
    /// After a call: clears the slot.
    fn returned(&mut self) {
        // A frame that is dropped next keeps its slot as it is: nobody looks at it.
        let next = decode_at(&self.f, self.whole.next).map(|i| i.op);
        if !next.is_some_and(|op| op.row().drops_frame_unseen()) {
            self.a.store_i(at(E, 0), 0);
        }
        match self.label_at(self.whole.next) {
            Some(l) => self.returns.push((self.pc(self.whole.next), l)),
            None => self.refused = Some(Refusal::Instructions),
        }
    }
    /// Drops the frame.
    fn drop_frame(&mut self, frame: Frame) {
        self.a.alu_i(Q, Add, E, frame_bytes(frame));
    }
    /// `R`: the entry of a function of this module. `B`: its machine code, or the stub that stands
    /// for it.
    fn local_target(&mut self, to: Target) {
        let Some(to) = to.0 else {
            self.refused = Some(Refusal::Target);
            return;
        };
        // Directly after a `func_info`, whose last 32 bits lead to the code.
        let words = Op::FuncInfo.row().words() as u32;
        let info = to.checked_sub(words).and_then(|at| decode_at(&self.f, at));
        if info.is_none_or(|i| i.op != Op::FuncInfo) {
            self.refused = Some(Refusal::Target);
            return;
        }
        let pc = self.pc(to);
        self.a.mov_i(R, pc);
        self.a.load32(B, at(R, LEAD_CODE));
    }
    fn is_self(&self, to: Target) -> bool {
        to.0 == Some(self.f.entry)
    }
    /// The same for the function that an export leads to.
    fn export_target(&mut self, export: u64) {
        self.a.mov_i(R, export);
        let address = self.env.targets.export_address;
        self.a.load(R, at(R, address));
        self.a.load32(B, at(R, LEAD_CODE));
    }
    fn call_local(&mut self, to: Target, tail: bool) {
        if self.is_self(to) {
            match tail {
                true => self.a.jump_self(self.used_up),
                false => self.a.call_self(),
            }
            return;
        }
        self.local_target(to);
        match tail {
            true => self.a.jump_code(B),
            false => self.a.call_code(B),
        }
    }
}
