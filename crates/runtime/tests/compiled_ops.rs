//! Runs each op that has a template both by its step and as machine code, on the same operands.
//!
//! Registers, stack, heap, reductions and the next instruction must be equal. Operands are drawn by
//! the kinds in the op's row, so a new template is covered without a change here; an op whose
//! operands have to meet more than their kinds say has an arm in `case`. The test fails if an op
//! with a template is never drawn or never runs as machine code, except those in `NEVER`.
//!
//! Terms are of all kinds, among them limits of small integers and match contexts at odd bit
//! offsets. They are in X registers of the processor and in memory, in Y registers, and constants.
//! The heap has room or none. `OPS_SEED` and `OPS_ROUNDS` choose other operands, `OPS_ONLY` selects
//! an op. Two equal processes are made, one for each way to run the op. A called function is
//! another one in the same code; an exception goes to a handler in the frame below.
#![cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux"
))]

use purlin_interp::STEP;
use purlin_interp::compiled::{EXITS, FIELDS, MAIL, TARGETS, helpers, steps};
use purlin_isa::bit_fields::{cmd, flags, seg};
use purlin_isa::codec::{Value, packed};
use purlin_isa::contract::Stack;
use purlin_isa::ops::{COMPARISONS, Kind, List, MachineCode, Op, VARIANTS};
use purlin_jit::compiler::{Function, compile};
use purlin_jit::machine::Processor;
use purlin_jit::{Env, Stubs};
use purlin_runtime::code;
use purlin_runtime::compiled::{native_with_template, own_pid};
use purlin_runtime::cx::Cx;
use purlin_runtime::process::Process;
use purlin_runtime::signal::{Kind as SignalKind, Signal, receive};
use purlin_term::fun::{Export, FunEntry, FunName};
use purlin_term::layout::{FUN_WORDS, FunWords, Target};
use purlin_term::print::{Style, format_term};
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term, am, atom, gc};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of X registers in use: those in registers of the processor, and some in memory.
const XS: usize = 9;
const YS: usize = 4;
/// Ops with a template but no case here, and why.
const NEVER: &[(Op, &str)] = &[(
    Op::TypeSwitch,
    "it has no code: the tests behind it, which it spares, lead where it would",
)];
/// Size of the area for machine code, in bytes.
const AREA: usize = 1 << 20;

struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ x >> 31) as usize % n
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Memory below 2^31 in which code is placed, piece by piece.
struct Area {
    at: *mut u8,
    used: usize,
    stubs: Stubs,
}
impl Area {
    fn new() -> Area {
        let map = |wish: usize| {
            // SAFETY: a new mapping, which replaces none; its address is checked.
            unsafe {
                libc::mmap(
                    wish as *mut libc::c_void,
                    AREA,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                    -1,
                    0,
                )
            }
        };
        let at = (1..8)
            .map(|k| map(k << 27))
            .find(|&at| at as usize <= (1 << 31) - AREA)
            .expect("memory below 2^31");
        let mut a = Area {
            at: at.cast(),
            used: 0,
            stubs: Stubs::default(),
        };
        let (bytes, stubs) =
            purlin_jit::stubs::make(Processor::HOST, at as u64, &FIELDS, &helpers(), EXITS)
                .expect("stubs are near each other");
        a.put(&bytes);
        a.stubs = stubs;
        a
    }
    fn next(&self) -> u64 {
        self.at as u64 + self.used as u64
    }
    fn put(&mut self, bytes: &[u8]) {
        assert!(self.used + bytes.len() <= AREA);
        self.allow(libc::PROT_WRITE);
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(self.used), bytes.len());
        }
        self.allow(libc::PROT_EXEC);
        self.synchronise(bytes.len());
        self.used = (self.used + bytes.len()).next_multiple_of(32);
    }
    /// Makes this thread fetch what was written last.
    #[cfg(target_arch = "aarch64")]
    fn synchronise(&self, bytes: usize) {
        unsafe extern "C" {
            fn __clear_cache(from: *mut u8, to: *mut u8);
        }
        let from = self.at.wrapping_add(self.used);
        // SAFETY: within the mapping.
        unsafe { __clear_cache(from, from.wrapping_add(bytes)) };
    }
    #[cfg(not(target_arch = "aarch64"))]
    fn synchronise(&self, _bytes: usize) {}
    fn allow(&self, what: i32) {
        // SAFETY: the whole mapping; nothing runs it now.
        let r = unsafe { libc::mprotect(self.at.cast(), AREA, libc::PROT_READ | what) };
        assert_eq!(r, 0);
    }
}

/// A process with terms in its registers.
struct World {
    cx: Box<Cx>,
    cell: Box<std::mem::MaybeUninit<Process>>,
    /// The word that `running` writes to.
    mark: Box<u64>,
}

/// The form that an op needs of a term that it looks into.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    Cons,
    /// A tuple of at least three elements.
    Tuple,
    /// A tuple of three elements.
    Triple,
    Context,
    Map,
}

fn small(n: i64) -> Term {
    Term::small(n)
}
const MOST: i64 = (1 << 59) - 1;
const LEAST: i64 = -(1 << 59);

impl World {
    fn new(seed: u64, case: &Case, handler: *const u64, full: bool) -> World {
        let needs = case.needs;
        let mut cx: Box<Cx> = Cx::boxed(0);
        let mut cell: Box<std::mem::MaybeUninit<Process>> =
            Box::new(std::mem::MaybeUninit::zeroed());
        // SAFETY: as in the tests of the interpreter, only the pid is used.
        unsafe {
            (*cell.as_mut_ptr())
                .id
                .store(0, purlin_term::sync::Ordering::Relaxed);
            cx.proc.set(cell.as_mut_ptr());
            cx.process().ext_mut().dict.put(am::OK, small(7));
            gc::collect(&mut cx.heap, 6000, &mut [], false);
            // A frame, and below it the frame of the caller, which catches exceptions.
            let exit = Term::from_raw(code::stubs().exit.as_ptr() as u64);
            cx.heap.hend.sub(1).write(exit);
            cx.heap.hend.sub(2).write(Term::catch(handler as u64));
            cx.heap.hend.sub(3).write(exit);
            cx.heap.stop = cx.heap.hend.sub(YS + 4);
            cx.heap.stop.cast::<u64>().write(0);
            cx.returns = RETURNS.as_ptr();
            for k in 0..YS {
                cx.heap.stop.add(k + 1).write(NIL);
            }
        }
        cx.reds = 1000;
        let mut r = Random(seed);
        let mut mark = Box::new(0);
        cx.running = &raw mut *mark;
        let mut w = World { cx, cell, mark };
        for k in 0..XS {
            let t = w.wanted(&mut r, needs);
            w.cx.x[k] = t;
        }
        for k in 0..YS {
            let t = w.wanted(&mut r, needs);
            // SAFETY: a slot of the frame.
            unsafe { w.cx.heap.stop.add(k + 1).write(t) };
        }
        for &(k, what) in &case.set {
            let t = w.special(&mut r, what);
            w.cx.x[k] = t;
        }
        if case.frameless {
            // SAFETY: the caller's frame.
            unsafe { w.cx.heap.stop = w.cx.heap.hend.sub(3) };
        }
        if case.op.row().name.starts_with("loop_rec") || case.op == Op::RemoveMessage {
            w.receives(&mut r, case.op);
        }
        for k in 0..4 {
            w.cx.fr[k] = r.of(&[0.0, -0.0, 1.5, 1e308, -1e308, 3.0, 1e-308]);
        }
        if full {
            // Fills the room, except a word or two, with garbage.
            let left = (w.cx.heap.stop as usize - w.cx.heap.htop as usize) / 8;
            let n = left - 1 - r.below(2);
            let items = vec![NIL; n - 1];
            w.cx.tuple(&items);
        }
        w
    }
    fn wanted(&mut self, r: &mut Random, needs: Needs) -> Term {
        match needs {
            Needs::Cons => {
                let (a, b) = (self.term(r), self.term(r));
                self.cx.cons(a, b)
            }
            Needs::Tuple | Needs::Triple => {
                let n = if needs == Needs::Triple {
                    3
                } else {
                    3 + r.below(3)
                };
                let mut items: Vec<Term> = (0..n).map(|_| self.term(r)).collect();
                items[0] = r.of(&[am::OK, am::ERROR, small(1)]);
                self.cx.tuple(&items)
            }
            Needs::Context => self.context(r),
            Needs::Map => self.map(r),
            Needs::Nothing => self.term(r),
        }
    }
    /// Puts messages into the mailbox and has the receive look at some of them; at the last one
    /// too, if the op needs a current message.
    fn receives(&mut self, r: &mut Random, op: Op) {
        let looked = r.below(4);
        let wants_one = op != Op::LoopRec;
        for _ in 0..looked + usize::from(wants_one) + r.below(3) {
            let t = match r.below(3) {
                0 => r.of(&[small(1), am::OK, NIL]),
                1 => self.binary(r),
                _ => self.wanted(r, Needs::Tuple),
            };
            let s = Signal::copy_of(SignalKind::Message, t);
            // SAFETY: a process that runs nowhere else; the signal is its queue's afterwards.
            unsafe {
                let p = self.cell.as_mut_ptr();
                let pushed = (*p).in_transit.push(&raw mut (*s).link, || true);
                pushed.expect("an open queue");
                let _ = (*p).state.wake();
            }
        }
        for _ in 0..looked {
            self.look();
            self.step(Op::LoopRecEnd, &[Value::L(-1)], &[]);
        }
        match op {
            Op::LoopRec if r.below(3) == 0 => {
                // The receive starts again, with the messages that have been fetched.
                self.look();
                receive::restart(&mut self.cx);
            }
            Op::LoopRec => {}
            _ => _ = self.look(),
        }
        // Skipping a message ends the time slice.
        if op == Op::LoopRecEnd && r.below(4) == 0 {
            self.cx.reds = 1;
        }
    }
    /// Looks at the current message and leaves the registers as they were. Returns whether there
    /// is one.
    fn look(&mut self) -> bool {
        let before = self.cx.x;
        let mut words = packed(Op::LoopRec, &[Value::L(100), Value::X(0)]).expect("operands");
        let behind = words.len();
        words.extend([0; 200]);
        // SAFETY: an instruction; no X register is live where messages are looked at, and none of
        // what they held is used.
        let next = unsafe { STEP[words[0] as u16 as usize](&mut *self.cx, words.as_ptr()) };
        let found = std::ptr::eq(next, &raw const words[behind]);
        self.cx.x = before;
        found
    }
    fn cell_is_without_mailbox(&mut self) -> bool {
        // SAFETY: zeroed, or what the process has made since.
        unsafe { (*self.cell.as_mut_ptr()).mailbox.is_null() }
    }
    /// Returns the messages from the current one on, as text.
    fn messages(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let mut words = packed(Op::LoopRec, &[Value::L(100), Value::X(0)]).expect("operands");
            let behind = words.len();
            words.extend([0; 200]);
            // SAFETY: as in `look`.
            let next = unsafe { STEP[words[0] as u16 as usize](&mut *self.cx, words.as_ptr()) };
            if !std::ptr::eq(next, &raw const words[behind]) {
                return all;
            }
            all.push(format!("message {}", shown(self.cx.x[0])));
            self.step(Op::LoopRecEnd, &[Value::L(-1)], &[]);
        }
    }
    /// Makes the term that a register must hold for an op.
    fn special(&mut self, r: &mut Random, what: What) -> Term {
        match what {
            What::Fun(entry, free) => {
                let list: Vec<u64> = (0..free)
                    .map(|k| Value::X(k as u32).source_word())
                    .collect();
                let before = self.cx.x[XS];
                let n = Value::N;
                let operands = [n(entry as u64), Value::X(XS as u32), n(free as u64)];
                self.step(Op::MakeFun, &operands, &list);
                std::mem::replace(&mut self.cx.x[XS], before)
            }
            What::Named(name, arity) => {
                let e = code::export(atom::intern("lists"), atom::intern(name), arity);
                let p = self.cx.alloc(FUN_WORDS);
                // SAFETY: room for a fun without an environment; exports are never freed.
                unsafe {
                    FunWords::write(p, Target::Export(e), arity as u8, 0, NIL);
                    Term::boxed_at(p)
                }
            }
            What::Atom(t) => t,
            What::Small(n) => small(n),
            What::Tuple => self.wanted(r, Needs::Tuple),
            What::Tuples => {
                let all: Vec<Term> = (0..r.below(5))
                    .map(|_| self.wanted(r, Needs::Tuple))
                    .collect();
                self.cx.list(&all)
            }
            What::Writable => {
                let before = self.cx.x[0];
                self.cx.x[0] = small(20);
                self.step(Op::BsInitWritable, &[], &[]);
                std::mem::replace(&mut self.cx.x[0], before)
            }
        }
    }
    /// Runs an instruction by its step.
    fn step(&mut self, op: Op, operands: &[Value], list: &[u64]) {
        let mut words = packed(op, operands).expect("operands that fit");
        words.extend(list);
        words.extend([0; 4]);
        // SAFETY: an instruction, whose registers hold terms.
        unsafe { STEP[words[0] as u16 as usize](&mut *self.cx, words.as_ptr()) };
    }
    fn map(&mut self, r: &mut Random) -> Term {
        let mut keys = [am::ERROR, am::FALSE, am::OK, am::TRUE];
        keys.sort_by_key(|k| k.raw());
        let values = [small(1), NIL, am::OK, small(4)];
        let n = r.below(5);
        self.cx.flatmap(&keys[..n], &values[..n])
    }
    fn binary(&mut self, r: &mut Random) -> Term {
        let n = r.of(&[0, 1, 2, 7, 8, 9, 20, 70, 200]);
        let bytes: Vec<u8> = match r.below(2) {
            0 => (0..n)
                .map(|_| {
                    r.of(&[
                        b'a', 0x7F, 0x80, 0xC3, 0xA4, 0xE2, 0x82, 0xAC, 0xF0, 0, 0xFF,
                    ])
                })
                .collect(),
            // Characters, the last ones of three bytes at their limits, and what is none.
            _ => {
                let mut all = Vec::new();
                while all.len() < n {
                    all.extend_from_slice(r.of(&[
                        "a".as_bytes(),
                        "\u{80}".as_bytes(),
                        "\u{7FF}".as_bytes(),
                        "\u{800}".as_bytes(),
                        "\u{1000}".as_bytes(),
                        "\u{20AC}".as_bytes(),
                        "\u{D7FF}".as_bytes(),
                        "\u{E000}".as_bytes(),
                        "\u{FFFF}".as_bytes(),
                        "\u{10000}".as_bytes(),
                        b"\xC1\x80",
                        b"\xDF\xC0",
                        b"\xED\xA0\x80",
                        b"\xE1\x80\x00",
                        b"\xE1\x41\x80",
                    ]));
                }
                all.truncate(n);
                all
            }
        };
        let b = self.cx.binary(&bytes);
        match r.below(3) {
            0 if n > 1 => {
                let at = r.below(9);
                let bits = r.below(8 * n - at);
                self.cx.sub_binary(b, at, bits)
            }
            _ => b,
        }
    }
    /// A match context somewhere in a bitstring.
    fn context(&mut self, r: &mut Random) -> Term {
        let before = self.cx.x[0];
        self.cx.x[0] = self.binary(r);
        let (n, x0) = (Value::N, Value::X(0));
        self.step(Op::BsStartMatch, &[Value::L(3), x0, x0, n(1), n(0)], &[]);
        let all = match r.below(2) {
            0 => [r.below(17), r.below(9)],
            _ => [8 * r.below(4), 0],
        };
        for bits in all {
            self.step(Op::BsSkipFixed, &[Value::L(3), x0, n(bits as u64)], &[]);
        }
        std::mem::replace(&mut self.cx.x[0], before)
    }
    fn term(&mut self, r: &mut Random) -> Term {
        let c = &mut self.cx;
        match r.below(20) {
            0..=5 => small(r.of(&[
                0,
                1,
                -1,
                2,
                3,
                7,
                8,
                59,
                60,
                63,
                64,
                -2,
                1000,
                MOST,
                MOST - 1,
                LEAST,
                LEAST + 1,
                1 << 30,
                -(1 << 31),
                1 << 58,
            ])),
            6 => c.int(r.of(&[MOST + 1, LEAST - 1, i64::MAX, i64::MIN])),
            7 => c.big(r.below(2) == 0, &[5, 6, 7]),
            8 => r.of(&[am::TRUE, am::FALSE, am::OK, am::ERROR]),
            9 => NIL,
            10 => c.list(&[small(1), am::OK]),
            11 => c.cons(small(1), small(2)),
            12 => {
                let n = r.below(4);
                let items = [am::OK, small(3), NIL, am::ERROR];
                c.tuple(&items[..n])
            }
            13 => c.float(r.of(&[0.0, -0.0, 1.0, 1.5, 1e308])),
            14 => self.map(r),
            15 => c.local_ref([1, 2, 3]),
            16 | 17 => self.binary(r),
            18 => self.context(r),
            _ => c.string("ab"),
        }
    }
    /// Number of bytes of the heap that are used.
    fn used(&self) -> usize {
        self.cx.heap.htop as usize - self.cx.heap.heap as usize
    }
    /// Everything that an instruction may have changed, as text. With `garbage` it may have left
    /// some on the heap.
    fn state(
        &self,
        case: &Case,
        live: usize,
        next: u64,
        failed: bool,
        full: bool,
        garbage: bool,
    ) -> Vec<String> {
        let c = &self.cx;
        let mut all = vec![format!("next {next}"), format!("window {}", c.heap.window)];
        // The reductions of a collection depend on what it copies, so they differ where the two
        // ways collect different garbage: the step of `new_map` collects after it has built the
        // map, when nothing refers to the former value of the destination.
        let alike = case.op != Op::NewMap || !full;
        if alike {
            all.push(format!("reductions {}", c.reds));
        }
        if next == 0 {
            all.push(format!("{:?}", c.interp.exit));
            return all;
        }
        let of_op = case
            .operands
            .last()
            .filter(|_| case.op == Op::LoopRec && !failed);
        for k in 0..XS {
            // While a message is looked at, no other register is live.
            if k >= live && of_op != Some(&Value::X(k as u32)) {
                continue;
            }
            // An op that fails may have written some of its destinations.
            if failed && case.written.contains(&Value::X(k as u32)) {
                continue;
            }
            all.push(format!("x{k} = {}", shown(c.x[k])));
        }
        all.push(format!(
            "stack {}",
            c.heap.hend as usize - c.heap.stop as usize
        ));
        let mut p = c.heap.stop;
        while p < c.heap.hend {
            // SAFETY: within the stack.
            let w = unsafe { p.read() };
            all.push(match w.raw() & 3 {
                0 if w.raw() == 0 => "0".into(),
                0 => "address".into(),
                _ => shown(w),
            });
            p = p.wrapping_add(1);
        }
        for k in 0..4 {
            all.push(format!("fr{k} = {:x}", c.fr[k].to_bits()));
        }
        all.push(format!("mark {:x}", *self.mark));
        if alike && !garbage {
            all.push(format!("heap {}", self.used()));
        }
        all
    }
}

/// A term as text; a match context as its position and end.
fn shown(t: Term) -> String {
    if t.is_boxed() && t.subtag() == Some(Subtag::MatchContext) {
        // SAFETY: the words of a match context.
        let words = unsafe { std::slice::from_raw_parts((t.raw() - 2) as *const u64, 5) };
        return format!("context {:?}", &words[3..5]);
    }
    match t.raw() & 0x3F {
        // The mark of a catch contains an address.
        0x1B => "catch".into(),
        _ if t == Term::NON_VALUE => "no value".into(),
        _ => format_term(t, Style::Write, usize::MAX),
    }
}

/// An instruction and its requirements.
struct Case {
    op: Op,
    operands: Vec<Value>,
    list: Vec<u64>,
    needs: Needs,
    /// X registers that hold a value after it.
    live: usize,
    /// The instruction after it, which it may skip.
    behind: Option<(Op, Vec<Value>)>,
    /// Required contents of X registers.
    set: Vec<(usize, What)>,
    /// Registers that may be written before it fails, and whether its machine code may have built a
    /// term by then, which is garbage if it fails or starts over as a step.
    written: Vec<Value>,
    makes_before: bool,
    /// Whether it ends a function that has no frame then.
    frameless: bool,
    /// The fun entry that its operands name, or that of a fun in a register.
    entry: Option<&'static FunEntry>,
}

/// The required contents of a register.
#[derive(Clone, Copy)]
enum What {
    /// A fun of that entry with that many words of environment.
    Fun(*const FunEntry, usize),
    /// A function of `lists`, by name and arity.
    Named(&'static str, u32),
    Atom(Term),
    Small(i64),
    Tuple,
    /// A list of tuples.
    Tuples,
    /// A binary that can be appended to in place.
    Writable,
}

/// The label that failing tests jump to.
const FAIL: i32 = i32::MAX;
/// The entry of another function of the code.
const CALLEE: i32 = i32::MAX - 1;

fn register(r: &mut Random) -> Value {
    match r.below(3) {
        0 => Value::Y(r.below(YS) as u32),
        _ => Value::X(r.below(XS) as u32),
    }
}
fn constant(r: &mut Random) -> Value {
    Value::C(
        r.of(&[
            small(0),
            small(1),
            small(-1),
            small(3),
            small(60),
            small(MOST),
            small(LEAST),
            small(1 << 40),
            NIL,
            am::OK,
            am::TRUE,
        ])
        .raw(),
    )
}
fn source(r: &mut Random) -> Value {
    match r.below(4) {
        0 => constant(r),
        _ => register(r),
    }
}
fn immediate(r: &mut Random) -> Value {
    Value::N(constant(r).word())
}

/// A key of small maps.
fn key(r: &mut Random) -> Value {
    Value::C(r.of(&[am::ERROR, am::FALSE, am::OK, am::TRUE]).raw())
}
/// The export and the function of a native.
fn native(module: &str, name: &str, arity: u32) -> (Value, Value) {
    let (m, f) = (atom::intern(module), atom::intern(name));
    let (_, b) = code::native(m, f, arity).expect("a native");
    let export: *const Export = code::export(m, f, arity);
    (Value::N(export as u64), Value::N(b.entry() as usize as u64))
}
/// A fun entry with that many arguments and words of environment.
fn fun_entry(arity: usize, free: usize) -> &'static FunEntry {
    let name = FunName {
        module: am::OK,
        old_uniq: 0,
        old_index: 0,
        uniq: [0; 16],
        index: 0,
        arity: arity as u8,
        num_free: free as u8,
    };
    Box::leak(Box::new(FunEntry::new(name, am::OK)))
}
/// A random operand of that kind.
fn by_kind(kind: Kind, r: &mut Random) -> Value {
    let n = |n: usize| Value::N(n as u64);
    match kind {
        Kind::Read | Kind::Write | Kind::Dest | Kind::Change | Kind::ChangeSource => register(r),
        Kind::Value | Kind::Source => source(r),
        Kind::Label | Kind::Handler => Value::L(FAIL),
        Kind::Callee => Value::L(CALLEE),
        Kind::Live => n(XS),
        Kind::Arity => n(r.below(7)),
        Kind::Frame => n(YS),
        Kind::Heap => n(r.below(40)),
        // Derived from the list.
        Kind::Count | Kind::Few => n(0),
        Kind::Element | Kind::FarElement => n(8 * (1 + r.below(3))),
        Kind::Float => n(8 * r.below(4)),
        Kind::Number | Kind::Size => n(0),
        Kind::Integer => n(r.below(65)),
        Kind::Term => immediate(r),
        Kind::Header => Value::N(header(Subtag::Tuple, r.below(4))),
        Kind::Export => {
            // Natives, and a function that is not loaded.
            let (name, arity) = r.of(&[("nobody", 2), ("reverse", 2), ("member", 2)]);
            let e: *const Export = code::export(atom::intern("lists"), atom::intern(name), arity);
            Value::N(e as u64)
        }
        Kind::Native => native("lists", "member", 2).1,
        Kind::Entry => Value::N(std::ptr::from_ref(fun_entry(1, 0)) as u64),
        Kind::Bytes => Value::N(b"some bytes".as_ptr() as u64),
        Kind::Slot | Kind::Counter => Value::N(&raw const EMPTY as u64),
        Kind::Mark => n(0x1234_5678_9ABC),
    }
}
/// The table of return points, which is empty.
static RETURNS: [u64; 3] = [0; 3];
/// A slot without a function.
static EMPTY: AtomicU64 = AtomicU64::new(0);
/// The flag that says whether natives are traced.
static TRACED: AtomicU64 = AtomicU64::new(0);

/// A random list of that kind.
fn by_list(kind: List, r: &mut Random) -> Vec<u64> {
    let k = r.below(5);
    match kind {
        List::Sources => (0..k).map(|_| source(r).source_word()).collect(),
        List::Registers => (0..k).map(|_| register(r).source_word()).collect(),
        // Keys in order. The register of the map itself, if it is a destination, comes last.
        List::Fetches => {
            let mut keys = [am::ERROR, am::FALSE, am::OK];
            keys.sort_by_key(|k| k.raw());
            let all = keys[..1 + r.below(3)].iter();
            all.flat_map(|k| [k.raw(), Value::X(4 + r.below(5) as u32).source_word()])
                .collect()
        }
        List::Labels => (0..1 + r.below(9))
            .map(|i| if i == 2 { 0 } else { arm(i) })
            .collect(),
        List::Switch => {
            let mut arms: Vec<u64> = (0..1 + r.below(12)).map(|_| constant(r).word()).collect();
            arms.sort_unstable();
            arms.dedup();
            let k = arms.len();
            arms.extend((0..k).map(arm));
            arms
        }
        List::Arms => (0..1 + k)
            .flat_map(|i| [constant(r).word(), arm(i)])
            .collect(),
        List::ArityArms => (0..1 + k)
            .flat_map(|i| [header(Subtag::Tuple, i), arm(i)])
            .collect(),
        List::Updates => (0..1 + r.below(2))
            .flat_map(|i| [1 + i as u64, source(r).source_word()])
            .collect(),
        List::Segments => (0..1 + r.below(4)).flat_map(|_| segment(r)).collect(),
        List::Commands => commands(r),
    }
}
/// A random segment of a binary construction.
fn segment(r: &mut Random) -> [u64; 5] {
    let all = Value::C(am::ALL.raw()).source_word();
    let bits = |n: i64| Value::C(small(n).raw()).source_word();
    let order = r.of(&[0, 0, flags::LITTLE]);
    match r.below(6) {
        0..=2 => {
            let n = r.of(&[8, 8, 16, 24, 32, 40, 64]);
            [seg::INTEGER, 1, order, source(r).source_word(), bits(n)]
        }
        3 => [seg::UTF8, 0, 0, register(r).source_word(), 0],
        4 => [
            seg::STRING,
            8,
            0,
            b"some bytes".as_ptr() as u64,
            1 + r.below(9) as u64,
        ],
        _ => [seg::BINARY, 8, 0, register(r).source_word(), all],
    }
}
/// Commands that match a bitstring.
///
/// As in compiled code, the first one checks that there are as many bits as the others take. No
/// destination is a register that may hold the match context.
fn commands(r: &mut Random) -> Vec<u64> {
    let (mut all, mut taken) = (Vec::new(), 0);
    let live = XS as u64;
    for _ in 0..1 + r.below(4) {
        let dst = Value::X(5 + r.below(4) as u32).source_word();
        let bits = r.of(&[1, 3, 8, 8, 13, 16, 24, 32, 40, 56]);
        taken += match r.below(6) {
            0..=2 => {
                let order = match bits % 8 {
                    0 => r.of(&[0, flags::LITTLE]),
                    _ => 0,
                };
                let flags = order | r.of(&[0, flags::SIGNED]);
                all.extend([cmd::INTEGER, live, flags, bits, dst]);
                bits
            }
            3 => {
                all.extend([cmd::BINARY, live, 0, bits, dst]);
                bits
            }
            4 => {
                all.extend([cmd::SKIP, bits]);
                bits
            }
            _ => {
                all.extend([cmd::EQ, 8, small(r.of(&[b'a', 0, 0xC3]).into()).raw()]);
                8
            }
        };
    }
    let tail = r.below(3) == 0;
    if tail {
        let dst = Value::X(5 + r.below(4) as u32).source_word();
        all.extend([cmd::GET_TAIL, live, 1, dst]);
    }
    let ensure = match !tail && r.below(3) == 0 {
        true => vec![cmd::ENSURE_EXACTLY, taken],
        false => vec![cmd::ENSURE_AT_LEAST, taken, r.of(&[1, 1, 8])],
    };
    [ensure, all].concat()
}
/// The form that an op needs of the terms that it looks into.
fn needs(op: Op) -> Needs {
    use Op::*;
    match op {
        GetList | GetHd | GetTl | AllocateGetList => Needs::Cons,
        UpdateRecord => Needs::Triple,
        GetTupleElement | GetTupleElementFar | GetTupleElements2 | TestArity | SetTupleElement => {
            Needs::Tuple
        }
        BsGetPosition | BsSetPosition | BsGetByte | BsGetSmall | BsSkipFixed | BsTestTail
        | BsTestUnit | BsGetUtf | BsSkipUtf | BsNextByte | BsContextPosition
        | BsNextBytePosition | BsNextByteTable | BsMatch | BsGetBinary | BsGetTail | BsSkipBits => {
            Needs::Context
        }
        PutMapAssoc | PutMapExact | HasMapFields | GetMapElements => Needs::Map,
        _ => Needs::Nothing,
    }
}

/// Whether an op ends a function that has no frame.
fn is_frameless(op: Op) -> bool {
    let parts = op.row().contract.parts;
    let all: Vec<Op> = match parts.is_empty() {
        true => vec![op],
        false => parts.iter().map(|p| p.op).collect(),
    };
    let drops = |op: &Op| op.row().contract.stack == Stack::Pop;
    let leaves = |op: &Op| {
        use Op::*;
        matches!(op, Return | CallOnly | CallExtOnly | CallBifOnly)
    };
    all.iter().any(leaves) && !all.iter().any(drops)
}

/// An instruction of that op with random operands.
fn case(op: Op, r: &mut Random) -> Option<Case> {
    use Op::*;
    let n = Value::N;
    let fail = Value::L(FAIL);
    let mut list = op.row().list.map_or(Vec::new(), |l| by_list(l, r));
    let live = n(XS as u64);
    let (mut set, mut behind, mut entry) = (Vec::new(), None, None);
    // The call of the native for which a shortcut stands in.
    let of = |name: &str, args: &[Value], dst: Value| {
        let (export, native) = native("erlang", name, args.len() as u32);
        let mut operands = vec![fail, native];
        operands.extend(args);
        operands.extend([dst, export, live]);
        operands
    };
    let operands = match op {
        InitY | TryEnd | TryCase | CatchEnd => vec![Value::Y(r.below(YS) as u32)],
        Catch => vec![Value::Y(r.below(YS) as u32), fail],
        Trim => vec![n(r.below(YS) as u64)],
        // Trimming a frame renumbers its Y registers.
        TrimCall => vec![n(r.below(YS) as u64), Value::L(CALLEE), n(2)],
        AllocateMove | AllocateInitY | AllocateGetList | Allocate | AllocateZero | AllocateHeap
        | AllocateHeapZero => {
            let frame = r.below(4);
            let x = Value::X(r.below(XS) as u32);
            let frame = n(frame as u64);
            // Slots that are not cleared are written next, or there are none.
            match op {
                Allocate => vec![n(0), live],
                AllocateZero => vec![frame, live],
                AllocateHeap => vec![n(0), n(r.below(40) as u64), live],
                AllocateHeapZero => vec![frame, n(r.below(40) as u64), live],
                AllocateMove => vec![n(1), live, x, Value::Y(0)],
                AllocateInitY => vec![n(1), live, Value::Y(0)],
                _ => vec![n(1), live, x, Value::Y(0), Value::X(r.below(XS) as u32)],
            }
        }
        TestHeapPutListReturn => vec![live, source(r), source(r), Value::X(0), n(YS as u64)],
        AddReturn => vec![
            Value::NO_LABEL,
            source(r),
            source(r),
            Value::X(0),
            n(YS as u64),
        ],
        AddCallOnly | SubCallOnly => {
            let (dst, to) = (Value::X(r.below(3) as u32), Value::L(CALLEE));
            vec![Value::NO_LABEL, source(r), source(r), dst, to, n(3)]
        }
        IsInRange => {
            let (a, b) = (r.of(&[-5, 0, 1, LEAST]), r.of(&[7, 1 << 40, MOST]));
            vec![fail, register(r), n(small(a).raw()), n(small(b).raw())]
        }
        GetTupleElements2 => vec![
            register(r),
            n(8 * (1 + r.below(2) as u64)),
            register(r),
            register(r),
        ],
        SetTupleElement => {
            // No tuple is put into itself.
            let (t, v) = (r.below(XS), 1 + r.below(XS - 1));
            let (tuple, other) = (Value::X(t as u32), Value::X(((t + v) % XS) as u32));
            let (known, slot) = (constant(r), Value::Y(r.below(YS) as u32));
            let (src, tuple) =
                r.of(&[(known, tuple), (other, tuple), (slot, tuple), (other, slot)]);
            vec![src, tuple, n(8 * (1 + r.below(3) as u64))]
        }
        FastSetelement => {
            if r.below(8) > 0 {
                set.push((0, What::Small(r.of(&[-1, 0, 1, 2, 3, 4, 6]))));
            }
            if r.below(8) > 0 {
                set.push((1, What::Tuple));
            }
            let (export, native) = native("erlang", "setelement", 3);
            behind = Some((CallBif, vec![export, native, n(3)]));
            vec![]
        }
        TestArity => vec![fail, register(r), n(header(Subtag::Tuple, 3 + r.below(3)))],
        IsTaggedTuple => {
            let h = header(Subtag::Tuple, 1 + r.below(3));
            vec![fail, register(r), n(h), n(am::OK.raw())]
        }
        IsFunction2 => {
            let arity = r.below(3);
            set.push((0, What::Fun(fun_entry(1, 2), 2)));
            let other = register(r);
            let fun = r.of(&[Value::X(0), other]);
            vec![fail, fun, Value::C(small(arity as i64).raw())]
        }
        UpdateRecord => vec![register(r), register(r), n(3), n(0)],
        JumpTable => {
            let first = r.of(&[0i64, 1, -3, 55, 1 << 40]);
            vec![register(r), fail, n(first as u64), n(0)]
        }
        CallFun | CallFun2 | CallFunLast | CallFun2Last => {
            let (arity, free) = (r.below(5), r.below(4));
            // Sometimes one of another arity.
            let of = fun_entry(arity + usize::from(r.below(8) == 0), free);
            entry = Some(of);
            set.push((
                arity,
                match r.below(4) {
                    0 if arity == 2 => What::Named(r.of(&["nobody", "reverse", "member"]), 2),
                    _ => What::Fun(of, free),
                },
            ));
            let (arity, fun) = (n(arity as u64), Value::X(arity as u32));
            match op {
                CallFun => vec![arity],
                CallFun2 => vec![arity, fun],
                CallFunLast => vec![arity, n(YS as u64)],
                _ => vec![arity, fun, n(YS as u64)],
            }
        }
        Apply | ApplyLast => {
            let name = r.of(&["nobody", "reverse", "member"]);
            set.push((2, What::Atom(atom::intern("lists"))));
            set.push((3, What::Atom(atom::intern(name))));
            match op {
                Apply => vec![n(2)],
                _ => vec![n(YS as u64), n(2)],
            }
        }
        CallBif | CallBifLast | CallBifOnly => {
            let (name, arity) = r.of(&[
                ("member", 2),
                ("keyfind", 3),
                ("keymember", 3),
                ("reverse", 2),
            ]);
            if name != "reverse" && r.below(4) > 0 {
                set.push((arity - 1, What::Tuples));
            }
            if arity == 3 && r.below(4) > 0 {
                set.push((1, What::Small(r.of(&[-1, 0, 1, 1, 2, 3]))));
                set.push((
                    0,
                    What::Atom(r.of(&[am::OK, am::ERROR, small(1), am::TRUE])),
                ));
            }
            let (export, native) = native("lists", name, arity as u32);
            let arity = n(arity as u64);
            match op {
                CallBifLast => vec![export, native, n(YS as u64), arity],
                _ => vec![export, native, arity],
            }
        }
        Bif0 => {
            let (_, native) = native("erlang", r.of(&["self", "self", "node"]), 0);
            vec![native, register(r)]
        }
        Bif1 => {
            let name = r.of(&["abs", "not", "tuple_size", "bit_size", "bit_size", "get"]);
            of(name, &[source(r)], register(r))
        }
        Bif2 => {
            let name = r.of(&["/", "and", "or", "xor", "min", "max", "element", "map_get"]);
            of(name, &[source(r), source(r)], register(r))
        }
        FastElement => {
            let (tuple, k, dst) = (register(r), 1 + r.below(4), register(r));
            let index = Value::C(small(k as i64).raw());
            behind = Some((Bif2, of("element", &[index, tuple], dst)));
            vec![tuple, n(8 * k as u64), dst]
        }
        FastElementOf => {
            let (tuple, index, dst) = (register(r), register(r), register(r));
            behind = Some((Bif2, of("element", &[index, tuple], dst)));
            vec![tuple, index, dst]
        }
        FastCompare => {
            let (a, b, dst, k) = (source(r), source(r), register(r), r.below(8));
            behind = Some((Bif2, of(COMPARISONS[k], &[a, b], dst)));
            vec![a, b, dst, n(k as u64)]
        }
        FastMapGet | FastIsMapKey => {
            let name = if op == FastMapGet {
                "map_get"
            } else {
                "is_map_key"
            };
            let (map, dst) = (register(r), register(r));
            let (known, any) = (key(r), source(r));
            let key = r.of(&[known, any]);
            behind = Some((Bif2, of(name, &[key, map], dst)));
            vec![map, key, dst]
        }
        FastHd | FastTl | FastTupleSize | FastByteSize | FastMapSize | FastLength => {
            let name = op.row().name.trim_start_matches("fast_");
            let native = if op == FastLength { Length } else { Bif1 };
            let (src, dst) = (register(r), register(r));
            behind = Some((native, of(name, &[src], dst)));
            vec![src, dst]
        }
        Send => {
            let nobody = Term::pid(r.of(&[77, 1_000_003]));
            let to = r.of(&[nobody, nobody, nobody, am::OK, small(1)]);
            set.push((0, What::Atom(to)));
            vec![]
        }
        LoopRec => vec![fail, register(r)],
        FLoad | FConv => vec![source(r), n(8 * r.below(4) as u64)],
        PutMapAssoc | PutMapExact => {
            let mut keys = vec![key(r), key(r)];
            keys.sort_by_key(|k| k.word());
            keys.dedup();
            list = keys
                .iter()
                .flat_map(|k| [k.word(), source(r).source_word()])
                .collect();
            vec![fail, register(r), register(r), live, n(0)]
        }
        NewMap => {
            let mut keys = [am::ERROR, am::FALSE, am::OK, am::TRUE];
            keys.sort_by_key(|k| k.raw());
            let keys: &'static [u64] = Vec::leak(
                [
                    vec![header(Subtag::Tuple, 4)],
                    keys.map(|k| k.raw()).to_vec(),
                ]
                .concat(),
            );
            let literal = keys.as_ptr() as u64 | purlin_term::word::TAG_BOXED;
            list = (0..4).map(|_| source(r).source_word()).collect();
            vec![Value::C(literal), register(r), live, n(0)]
        }
        HasMapFields => {
            list = (0..1 + r.below(3)).map(|_| key(r).word()).collect();
            vec![fail, register(r), n(0)]
        }
        GetMapElements => vec![fail, Value::X(r.below(4) as u32), n(0)],
        MakeFun => {
            let of = fun_entry(1, list.len());
            vec![n(std::ptr::from_ref(of) as u64), register(r), n(0)]
        }
        BsStartMatch => vec![fail, register(r), register(r), live, n(r.below(2) as u64)],
        BsContextPosition => vec![register(r), register(r), live],
        BsNextBytePosition | BsNextByteTable => {
            // The context is read again after the first write.
            let context = Value::X(r.below(XS - 1) as u32);
            let first = Value::X(XS as u32 - 1);
            match op {
                BsNextBytePosition => vec![fail, context, first, register(r), live],
                _ => vec![
                    fail,
                    context,
                    first,
                    live,
                    fail,
                    n(r.of(&[0, 60, 0x7F])),
                    n(0),
                ],
            }
        }
        BsGetSmall => {
            let bits = 1 + r.below(56) as u64;
            vec![fail, register(r), n(bits), n(0), register(r)]
        }
        BsSkipFixed => vec![fail, register(r), n(r.below(100) as u64)],
        BsSkipBits => {
            set.push((0, What::Small(r.below(12) as i64 - 1)));
            let size = match r.below(4) {
                0 => source(r),
                _ => Value::X(0),
            };
            let context = Value::X(1 + r.below(XS - 1) as u32);
            vec![fail, context, size, n(r.of(&[1, 8, 3]))]
        }
        BsTestUnit => vec![fail, register(r), n(r.of(&[1, 2, 7, 8, 16, 128]))],
        BsGetUtf => vec![fail, register(r), n(8), n(0), register(r)],
        BsSkipUtf => vec![fail, register(r), n(8), n(0)],
        BsSetPosition => {
            // A position in that bitstring.
            set.push((0, What::Small(r.below(30) as i64)));
            vec![Value::X(1 + r.below(XS - 1) as u32), Value::X(0)]
        }
        BsGetBinary => {
            let size = match r.below(3) {
                0 => Value::C(am::ALL.raw()),
                1 => Value::C(small(r.below(9) as i64).raw()),
                _ => {
                    set.push((0, What::Small(r.below(12) as i64 - 1)));
                    Value::X(0)
                }
            };
            let context = Value::X(1 + r.below(XS - 1) as u32);
            vec![
                fail,
                context,
                size,
                n(r.of(&[1, 8])),
                n(0),
                register(r),
                live,
            ]
        }
        BsMatch => vec![fail, Value::X(r.below(5) as u32), n(0)],
        BsCreateBin => {
            if r.below(3) == 0 {
                set.push((0, What::Writable));
                let all = Value::C(am::ALL.raw()).source_word();
                let bin = Value::X(0).source_word();
                list.splice(0..0, [seg::APPEND, 8, 0, bin, all]);
            }
            for (k, s) in list.chunks_mut(5).enumerate() {
                s[2] |= (k as u64 + 1) << 32;
            }
            vec![fail, register(r), n(r.below(5) as u64), live, n(0)]
        }
        _ => {
            let operand = |o: &purlin_isa::ops::Operand| match o.name {
                // A match context is never a constant.
                "context" => register(r),
                _ => by_kind(o.kind, r),
            };
            op.row().operands.iter().map(operand).collect()
        }
    };
    let mut operands = operands;
    let frameless = is_frameless(op);
    if frameless {
        for v in &mut operands {
            if let Value::Y(n) = *v {
                *v = Value::X(n);
            }
        }
    }
    if let (Some(kind), Some(count)) = (op.row().list, operands.last_mut()) {
        let one = kind.words(1).max(1);
        *count = n((list.len() / one) as u64);
    }
    let written = match op.row().list {
        Some(List::Commands | List::Fetches) => list.iter().map(|&w| Value::of_source(w)).collect(),
        _ => Vec::new(),
    };
    let live = match op {
        TryCase => 3,
        Send => 1,
        LoopRec | LoopRecEnd | Wait => 0,
        CallFun | CallFun2 | CallFunLast | CallFun2Last => XS,
        CatchEnd | CallBif | CallBifLast | CallBifOnly | FastSetelement => 1,
        // The arguments.
        _ if op.row().effects.calls => match op.row().named("arity").map(|i| operands[i].word()) {
            Some(arity) => arity as usize,
            None => XS,
        },
        _ if op.row().effects.ends && op.row().list.is_none() && op.row().named("to").is_none() => {
            1
        }
        _ => XS,
    };
    Some(Case {
        op,
        operands,
        list,
        needs: needs(op),
        live,
        behind,
        set,
        written,
        makes_before: op == BsMatch,
        frameless,
        entry,
    })
}

/// Stands for a label of a list until its distance is known.
fn arm(i: usize) -> u64 {
    (1 << 48) | (i as u64 % 6)
}

/// A function that consists of an instruction.
struct Code {
    words: Vec<u64>,
    /// Offsets of its entry and end, of the exception handler, and of the entry of another
    /// function.
    entry: usize,
    end: usize,
    handler: usize,
    callee: usize,
}

/// The code of a case. The instruction is followed by ops for which machine code exits to the
/// interpreter, so that the test sees where the instruction has led to.
fn code_of(c: &Case) -> Option<Code> {
    let info = packed(
        Op::FuncInfo,
        &[
            Value::N(am::OK.raw()),
            Value::N(am::OK.raw()),
            Value::N(XS as u64),
            Value::N(u64::from(purlin_term::fun::uncompiled())),
        ],
    )
    .ok()?;
    let stop = packed(Op::ProcessExit, &[]).ok()?;
    let size = packed(c.op, &c.operands).ok()?.len() + c.list.len();
    let behind = match &c.behind {
        Some((op, operands)) => packed(*op, operands).ok()?.len(),
        None => 0,
    };
    // Words from the instruction to the first op that stops.
    let stops = size + behind;
    let entry = info.len();
    let end = entry + stops + 10 * stop.len();
    let callee = end + info.len();
    let mut words = info.clone();
    let put = |words: &mut Vec<u64>, op: Op, operands: &[Value]| {
        let at = words.len();
        let placed = |&v: &Value| match v {
            Value::L(FAIL) => Value::L((entry + stops + 1 - at) as i32),
            Value::L(CALLEE) => Value::L((callee - at) as i32),
            v => v,
        };
        let operands: Vec<Value> = operands.iter().map(placed).collect();
        words.extend(packed(op, &operands).ok()?);
        Some(())
    };
    put(&mut words, c.op, &c.operands)?;
    for &w in &c.list {
        words.push(match (c.op.row().list, w >> 48) {
            (Some(List::Switch | List::ArityArms | List::Arms | List::Labels), 1) => {
                (stops as u64) + 2 + (w & 0xFF)
            }
            _ => w,
        });
    }
    if let Some((op, operands)) = &c.behind {
        put(&mut words, *op, operands)?;
    }
    for _ in 0..10 {
        words.extend(&stop);
    }
    words.extend(&info);
    words.extend(&stop);
    let handler = end - stop.len();
    Some(Code {
        words,
        entry,
        end,
        handler,
        callee,
    })
}

/// Executes steps until the case is over. Returns the next instruction, or 0 when the process
/// exits.
fn by_steps(w: &mut World, mut pc: *const u64) -> u64 {
    for _ in 0..30 {
        // SAFETY: an instruction of the case's code, or of a stub.
        let number = unsafe { pc.read() } as u16;
        if matches!(Op::of(number), Some(Op::ProcessExit | Op::ErrorHandler)) {
            return pc as u64;
        }
        // SAFETY: as above.
        pc = unsafe { STEP[number as usize](&mut *w.cx, pc) };
        if pc.is_null() {
            return 0;
        }
    }
    panic!("it runs again and again");
}

/// Number of steps of natives, matches and stores that machine code has made.
static STEPS: AtomicU64 = AtomicU64::new(0);

/// The step of an op, which counts it.
unsafe extern "C" fn counted(cx: *mut Cx, pc: *const u64) -> *const u64 {
    STEPS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the contract of a step, whose instruction begins with the number of its variant.
    unsafe { STEP[usize::from(pc.read() as u16)](cx, pc) }
}

/// The steps that machine code makes: those of natives, of matches and of stores are counted.
fn counting_steps() -> Vec<u64> {
    let mut all = steps();
    for number in 0..VARIANTS as u16 {
        if let Some(Op::CallBif | Op::CallBifOnly | Op::BsMatch | Op::SetTupleElement) =
            Op::of(number)
        {
            all[usize::from(number)] = counted as *const () as u64;
        }
    }
    all
}

/// Exit status of a child whose op has no such jump to turn.
const NO_SUCH_JUMP: i32 = 33;

/// Inverts the condition of the `k`th conditional jump, but for those that look whether a
/// collection is wanted: a turned one leaves the machine code in good order. Returns false if there
/// is none.
#[cfg(target_arch = "aarch64")]
fn turn_jump(code: &mut [u8], k: usize) -> bool {
    // The condition of `b.cond` is in the lowest bits, that of the others in bit 24.
    let turns = |w: &[u8]| match w[3] & 0x7F {
        0x54 if w[0] & 0x10 == 0 => Some((0, 1)),
        0x34..=0x37 => Some((3, 1)),
        _ => None,
    };
    let jumps: Vec<usize> = (0..code.len() / 4)
        .map(|i| 4 * i)
        .filter(|&i| turns(&code[i..i + 4]).is_some())
        .filter(|&i| {
            // `ldrb` of the flag, whose offset is in bits 10 to 21.
            let before = code
                .get(i.wrapping_sub(4)..i)
                .and_then(|w| w.try_into().ok());
            let word = u32::from_le_bytes(before.unwrap_or_default());
            word >> 22 != 0x39400000 >> 22 || word >> 10 & 0xFFF != FIELDS.gc_wanted as u32
        })
        .collect();
    let Some(&at) = jumps.get(k) else {
        return false;
    };
    let Some((byte, bit)) = turns(&code[at..at + 4]) else {
        return false;
    };
    code[at + byte] ^= bit;
    true
}

/// Inverts the condition of the `k`th conditional jump, but for those that look whether a
/// collection is wanted: a turned one leaves the machine code in good order. Returns false if there
/// is none.
#[cfg(target_arch = "x86_64")]
fn turn_jump(code: &mut [u8], k: usize) -> bool {
    // All of them are near jumps: 0F 80 to 0F 8F, and the distance.
    let is_jump = |w: &[u8]| w[0] == 0x0F && w[1] & 0xF0 == 0x80;
    let mut wanted = (FIELDS.gc_wanted as u32).to_le_bytes().to_vec();
    wanted.push(0);
    let at: Vec<usize> = (0..code.len().saturating_sub(5))
        .filter(|&i| is_jump(&code[i..]))
        // `cmp byte [rbx + flag], 0`: the offset in four bytes, and the number.
        .filter(|&i| !code[..i].ends_with(&wanted))
        .collect();
    let Some(&at) = at.get(k) else { return false };
    code[at + 1] ^= 1;
    true
}

#[test]
fn machine_code_does_what_steps_do() {
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let number = |name: &str, or: u64| {
        let set = std::env::var(name).ok();
        set.and_then(|v| v.parse().ok()).unwrap_or(or)
    };
    let (seed, rounds) = (number("OPS_SEED", 1), number("OPS_ROUNDS", 150));
    let only = std::env::var("OPS_ONLY").ok();
    let fault = std::env::var("OPS_FAULT").ok();
    let fault = fault.map(|k| k.parse::<usize>().expect("a number"));
    let mut turned = 0;
    if fault.is_some() {
        // It may run for ever.
        // SAFETY: no handler is set.
        unsafe { libc::alarm(8) };
    }
    let mut area = Area::new();
    purlin_term::fun::set_uncompiled(area.stubs.local as u32);
    let (steps, helpers) = (counting_steps(), helpers());
    let stubs_end = area.used;
    let mut seen: Vec<Op> = Vec::new();
    let mut wrong = Vec::new();
    let (mut ops, mut cases, mut left) = (0, 0, 0);
    for op in (0..VARIANTS as u16).filter_map(Op::of) {
        let row = op.row();
        let has_code = matches!(row.machine_code, MachineCode::template | MachineCode::fused);
        let skipped =
            NEVER.iter().any(|n| n.0 == op) || only.as_ref().is_some_and(|o| o != row.name);
        if seen.contains(&op) || !has_code || skipped {
            continue;
        }
        seen.push(op);
        ops += 1;
        let mut r = Random(seed.wrapping_mul(1 << 20) + op as u64);
        let (mut in_code, mut native_steps) = (0, 0);
        for _ in 0..rounds {
            let Some(c) = case(op, &mut r) else { break };
            let Some(code) = code_of(&c) else { continue };
            let full = row.effects.collects && r.below(3) == 0;
            // Traced natives run as steps.
            let traced = match op {
                Op::CallBif => r.below(3) == 0,
                // The native collects other garbage.
                Op::FastSetelement => !full && r.below(3) == 0,
                _ => false,
            };
            TRACED.store(u64::from(traced), Ordering::Relaxed);
            // Whether every pointer counts as one whose region must be held.
            let held = op == Op::SetTupleElement && r.below(2) == 0;
            let counted = match held {
                true => (0, 1 << 63),
                false => purlin_term::region::counted_memory(),
            };
            let s = r.below(1 << 40) as u64;
            let env = Env {
                fields: FIELDS,
                mail: MAIL,
                helpers,
                stubs: area.stubs,
                steps: &steps,
                targets: TARGETS,
                changes_code: &|_| false,
                // SAFETY: the address of an export, which are never freed.
                native: &|e| native_with_template(unsafe { &*(e as *const Export) }),
                own_pid: own_pid(),
                natives_traced: &raw const TRACED as u64,
                counted,
                stressed: false,
                annotated: false,
                chaos: false,
                no_value: Term::NON_VALUE.raw(),
                true_word: am::TRUE.raw(),
                false_word: am::FALSE.raw(),
            };
            let f = Function {
                code: &code.words,
                base: code.words.as_ptr() as u64,
                start: 0,
                entry: code.entry as u32,
                end: code.end as u32,
                arity: XS as u32,
            };
            let made = compile(f, &env).expect("code that is compiled");
            area.used = stubs_end;
            let to = area.next();
            // The template's own code: from behind the part that counts a call to the next
            // instruction's.
            let inner = purlin_jit::stubs::INNER as usize;
            let end = made.places.get(1).map_or(inner, |p| p.0 as usize);
            let mut bytes = made.code.place(to).expect("all is near");
            if let Some(k) = fault
                && turn_jump(&mut bytes[inner..end], k)
            {
                turned += 1;
            }
            area.put(&bytes);
            let place = |at: usize| &raw const code.words[at];
            if let Some(e) = c.entry {
                e.lead(place(code.callee));
            }
            let world = || World::new(s, &c, place(code.handler), full);
            let (mut a, mut b) = (world(), world());
            let before = a.state(&c, XS, 1, false, full, false);
            assert_eq!(
                before,
                b.state(&c, XS, 1, false, full, false),
                "two processes alike"
            );
            let first = place(code.entry);
            let next_a = by_steps(&mut a, first);
            // SAFETY: the stub that enters machine code; the registers hold terms.
            let next = unsafe {
                let enter: extern "C" fn(*mut Cx, u64) -> u64 =
                    std::mem::transmute(area.stubs.enter as usize);
                // Behind the part that counts a call.
                enter(&mut *b.cx, to + u64::from(purlin_jit::stubs::INNER))
            } & !1;
            let next_b = match next {
                0 => 0,
                n => by_steps(&mut b, n as *const u64),
            };
            let stepped = STEPS.swap(0, Ordering::Relaxed);
            native_steps += stepped;
            if traced && stepped == 0 {
                wrong.push(format!("{} runs a traced native by itself", row.name));
                break;
            }
            let raised = next_a == place(code.handler) as u64;
            let by_step = match op {
                Op::SetTupleElement => Some(held && !matches!(c.operands[0], Value::C(_))),
                Op::FastSetelement if !full && !traced && !raised => Some(false),
                _ => None,
            };
            if by_step.is_some_and(|is| is != (stepped > 0)) {
                wrong.push(format!("{} makes {stepped} steps", row.name));
                break;
            }
            match next == first as u64 {
                true => left += 1,
                false => in_code += 1,
            }
            cases += 1;
            let failed = next_a == place(code.end - 9) as u64;
            // After a call has returned, its arguments are dead. After it has raised, mark, class
            // and reason are live; the raw stack trace is no term.
            let own = place(0) as u64..place(code.end) as u64;
            let live = match row.effects.calls && own.contains(&next_a) {
                true if raised => 3,
                true => 1,
                false => c.live,
            };
            let garbage = c.makes_before && (failed || full || stepped > 0);
            if garbage && !full && b.used() < a.used() {
                wrong.push(format!("{} makes less than its step", row.name));
                break;
            }
            let state = |w: &World, next| w.state(&c, live, next, failed, full, garbage);
            let (mut sa, mut sb) = (state(&a, next_a), state(&b, next_b));
            // Which message is the current one, and which are left.
            if !a.cell_is_without_mailbox() && next_a != 0 && next_b != 0 {
                sa.extend(a.messages());
                sb.extend(b.messages());
                sa.push("all messages".into());
                sb.push("all messages".into());
            }
            if sa != sb {
                let d: Vec<String> = sa
                    .iter()
                    .zip(&sb)
                    .filter(|(x, y)| x != y)
                    .map(|(x, y)| format!("    step {x}\n    code {y}"))
                    .collect();
                wrong.push(format!(
                    "{} {:?} {:x?} full {full}, at {first:?}\n  before {before:?}\n{}",
                    row.name,
                    c.operands,
                    c.list,
                    d.join("\n")
                ));
                break;
            }
        }
        assert!(
            in_code > 0 || rounds < 20,
            "{} never ran in machine code",
            row.name
        );
        let applies = matches!(op, Op::Apply | Op::ApplyLast);
        assert!(
            !applies || native_steps > 0 || rounds < 20,
            "{} never ran a native as a step of machine code",
            row.name
        );
    }
    if fault.is_some() && turned == 0 {
        std::process::exit(NO_SUCH_JUMP);
    }
    println!("{ops} ops, {cases} instructions, {left} left to the interpreter");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Jumps that are turned round in an op's template, at most.
const TURNED: usize = 4;

/// The test above finds faults: each conditional jump of a template is turned round, one at a time,
/// and the op's cases run in a process of their own, which must fail. Of every eighth op and two
/// more, or of all with `OPS_FAULTS=all`.
#[test]
fn turned_jumps_are_found() {
    let all = std::env::var("OPS_FAULTS").is_ok_and(|v| v == "all");
    let me = std::env::current_exe().expect("this executable");
    let mut missed = Vec::new();
    let (mut seen, mut planted, mut eighth) = (Vec::new(), 0, 0);
    for op in (0..VARIANTS as u16).filter_map(Op::of) {
        let row = op.row();
        let has_code = matches!(row.machine_code, MachineCode::template | MachineCode::fused);
        // The code of `bif0` has no jump.
        let jumps = has_code && op != Op::Bif0;
        if seen.contains(&op) || !jumps || NEVER.iter().any(|n| n.0 == op) {
            continue;
        }
        seen.push(op);
        // These two have ways beside the template that differ in nothing but steps.
        let counted = matches!(op, Op::SetTupleElement | Op::FastSetelement);
        eighth += usize::from(!counted);
        if !all && !counted && eighth % 8 != 0 {
            continue;
        }
        for k in 0..TURNED {
            let run = std::process::Command::new(&me)
                .args(["--exact", "machine_code_does_what_steps_do"])
                .env("OPS_ONLY", row.name)
                .env("OPS_FAULT", k.to_string())
                .output()
                .expect("it runs");
            if run.status.code() == Some(NO_SUCH_JUMP) {
                break;
            }
            planted += 1;
            if run.status.success() {
                missed.push(format!("{} jump {k}", row.name));
            }
        }
    }
    println!("{planted} faults, {} not found", missed.len());
    assert!(planted > 0 && missed.is_empty(), "not found: {missed:?}");
}
