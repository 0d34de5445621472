//! Each op that has a template, run by its step and by machine code on the same operands: registers, stack, heap, reductions and
//! the instruction that is next must be the same.
//!
//! Operands are drawn from terms of all kinds, the borders of small integers and contexts at odd bits among them, in X registers of
//! the machine and in memory, in Y registers and as constants; the heap has room, or none. `OPS_SEED` and `OPS_ROUNDS` choose
//! others. Two processes are made alike, one for each way.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use purlin_interp::STEP;
use purlin_interp::compiled::{EXITS, FIELDS, TARGETS, helpers, steps};
use purlin_isa::codec::{Value, packed};
use purlin_isa::ops::{List, Op, VARIANTS};
use purlin_jit::quick::{Function, compile};
use purlin_jit::{Env, Stubs};
use purlin_runtime::code;
use purlin_runtime::cx::Cx;
use purlin_runtime::process::Process;
use purlin_term::print::{Style, format_term};
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term, am, gc};

/// X registers that hold something: both those of the machine and some in memory.
const XS: usize = 9;
const YS: usize = 4;
/// Bytes of machine code.
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

/// Memory below 2^31 that code is put into, piece by piece.
struct Area {
    at: *mut u8,
    used: usize,
    stubs: Stubs,
}
impl Area {
    fn new() -> Area {
        // SAFETY: a new mapping; the result is looked at.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                AREA,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT,
                -1,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        let mut a = Area {
            at: at.cast(),
            used: 0,
            stubs: Stubs::default(),
        };
        let (bytes, stubs) =
            purlin_jit::stubs::make(at as u64, &FIELDS, &helpers(), EXITS, TARGETS)
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
        self.used = (self.used + bytes.len()).next_multiple_of(32);
    }
    fn allow(&self, what: i32) {
        // SAFETY: the whole mapping; nobody runs it now.
        let r = unsafe { libc::mprotect(self.at.cast(), AREA, libc::PROT_READ | what) };
        assert_eq!(r, 0);
    }
}

/// A process with terms in its registers.
struct World {
    cx: Box<Cx>,
    _cell: Box<std::mem::MaybeUninit<Process>>,
}

/// The demand of an op on the term that it looks into.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    Cons,
    /// A tuple of three elements or more.
    Tuple,
    /// One of three.
    Triple,
    Context,
}

fn small(n: i64) -> Term {
    Term::small(n)
}
const MOST: i64 = (1 << 59) - 1;
const LEAST: i64 = -(1 << 59);

impl World {
    fn new(seed: u64, needs: Needs, full: bool) -> World {
        let mut cx: Box<Cx> = Cx::boxed(0);
        let mut cell: Box<std::mem::MaybeUninit<Process>> =
            Box::new(std::mem::MaybeUninit::zeroed());
        // SAFETY: as where the interpreter is tested: only the pid is used.
        unsafe {
            (*cell.as_mut_ptr())
                .id
                .store(0, purlin_term::sync::Ordering::Relaxed);
            cx.proc = cell.as_mut_ptr();
            gc::collect(&mut cx.heap, 6000, &mut [], false);
            // A frame, and the address that it returns to.
            cx.heap.stop = cx.heap.hend.sub(YS + 2);
            cx.heap.stop.cast::<u64>().write(0);
            cx.heap
                .hend
                .sub(1)
                .cast::<u64>()
                .write(code::stubs().exit.as_ptr() as u64);
            for k in 0..YS {
                cx.heap.stop.add(k + 1).write(NIL);
            }
        }
        cx.reds = 1000;
        let mut r = Random(seed);
        let mut w = World { cx, _cell: cell };
        for k in 0..XS {
            let t = w.wanted(&mut r, needs);
            w.cx.x[k] = t;
        }
        for k in 0..YS {
            let t = w.wanted(&mut r, needs);
            // SAFETY: a slot of the frame.
            unsafe { w.cx.heap.stop.add(k + 1).write(t) };
        }
        for k in 0..4 {
            w.cx.fr[k] = r.of(&[0.0, -0.0, 1.5, 1e308, -1e308, 3.0, 1e-308]);
        }
        if full {
            // All but a word or two of the room is taken by what nobody holds.
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
            Needs::Nothing => self.term(r),
        }
    }
    fn binary(&mut self, r: &mut Random) -> Term {
        let n = r.of(&[0, 1, 2, 7, 8, 9, 20, 70, 200]);
        let bytes: Vec<u8> = (0..n)
            .map(|_| {
                r.of(&[
                    b'a', 0x7F, 0x80, 0xC3, 0xA4, 0xE2, 0x82, 0xAC, 0xF0, 0, 0xFF,
                ])
            })
            .collect();
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
    /// A match context somewhere in a bit string.
    fn context(&mut self, r: &mut Random) -> Term {
        let before = self.cx.x[0];
        self.cx.x[0] = self.binary(r);
        let step = |w: &mut World, op: Op, operands: &[Value]| {
            let mut words = packed(op, operands).expect("operands that fit");
            words.extend([0; 4]);
            // SAFETY: an instruction, whose registers hold terms.
            unsafe { STEP[words[0] as u16 as usize](&mut *w.cx, words.as_ptr()) };
        };
        let (n, x0) = (Value::N, Value::X(0));
        step(self, Op::BsStartMatch, &[Value::L(3), x0, x0, n(1), n(0)]);
        for bits in [r.below(17), r.below(9)] {
            step(self, Op::BsSkipFixed, &[Value::L(3), x0, n(bits as u64)]);
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
            14 => {
                let keys = [am::ERROR, am::FALSE, am::OK, am::TRUE];
                let mut keys = keys;
                keys.sort_by_key(|k| k.raw());
                let values = [small(1), NIL, am::OK, small(4)];
                let n = r.below(5);
                c.flatmap(&keys[..n], &values[..n])
            }
            15 => c.local_ref([1, 2, 3]),
            16 | 17 => self.binary(r),
            18 => self.context(r),
            _ => c.string("ab"),
        }
    }
    /// All that an instruction may have changed, as text.
    fn state(&self, live: usize, next: u64) -> Vec<String> {
        let c = &self.cx;
        let mut all = vec![format!("next {next}")];
        // A collection costs what it copies.
        all.push(format!("reductions {}", c.reds));
        if next == 0 {
            all.push(format!("{:?}", c.interp.exit));
            return all;
        }
        for k in 0..live {
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
        let used = c.heap.htop as usize - c.heap.heap as usize;
        all.push(format!("heap {used}"));
        all
    }
}

/// A term as text; a context as its position and end.
fn shown(t: Term) -> String {
    if t.is_boxed() && t.subtag() == Some(Subtag::MatchContext) {
        // SAFETY: the words of a match context.
        let words = unsafe { std::slice::from_raw_parts((t.raw() - 2) as *const u64, 5) };
        return format!("context {:?}", &words[3..5]);
    }
    match t.raw() & 0x3F {
        // The mark of a catch leads to an address.
        0x1B => "catch".into(),
        _ if t == Term::NON_VALUE => "no value".into(),
        _ => format_term(t, Style::Write, usize::MAX),
    }
}

/// An instruction with what it needs.
struct Case {
    op: Op,
    operands: Vec<Value>,
    list: Vec<u64>,
    needs: Needs,
    live: usize,
}

const FAIL: i32 = i32::MAX;

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

/// An instruction of that op with operands by lot; none where this test makes none of it.
fn case(op: Op, r: &mut Random) -> Option<Case> {
    use Op::*;
    let n = Value::N;
    let fail = Value::L(FAIL);
    let mut needs = Needs::Nothing;
    let mut list = Vec::new();
    let live = n(XS as u64);
    let operands = match op {
        Move => vec![source(r), register(r)],
        Move2 => vec![source(r), register(r), source(r), register(r)],
        Move3 => vec![
            register(r),
            register(r),
            register(r),
            register(r),
            register(r),
            register(r),
        ],
        Swap => vec![register(r), register(r)],
        InitY | TryEnd => vec![Value::Y(r.below(YS) as u32)],
        TryCase | CatchEnd => vec![Value::Y(r.below(YS) as u32)],
        Catch => vec![Value::Y(r.below(YS) as u32), fail],
        TestHeap => vec![n(r.below(40) as u64), live],
        Trim => vec![n(r.below(YS) as u64)],
        GetList => vec![register(r), register(r), register(r)],
        GetHd | GetTl => vec![register(r), register(r)],
        IsNonemptyGetList => vec![fail, register(r), register(r), register(r)],
        PutList => vec![source(r), source(r), register(r)],
        TestHeapPutList => vec![live, source(r), source(r), register(r)],
        GetTupleElement => vec![register(r), n(8 * (1 + r.below(3) as u64)), register(r)],
        GetTupleElementFar => vec![register(r), register(r), n(8 * (1 + r.below(3) as u64))],
        GetTupleElements2 => vec![
            register(r),
            n(8 * (1 + r.below(2) as u64)),
            register(r),
            register(r),
        ],
        PutTuple => {
            let k = r.below(5);
            list = (0..k).map(|_| source(r).source_word()).collect();
            vec![register(r), n(k as u64)]
        }
        PutTuple2 => vec![source(r), source(r), register(r)],
        PutTuple3 => vec![source(r), source(r), source(r), register(r)],
        UpdateRecord => {
            let k = 1 + r.below(2);
            for i in 0..k {
                list.extend([1 + i as u64, source(r).source_word()]);
            }
            vec![register(r), register(r), n(3), n(k as u64)]
        }
        IsLt | IsGe | IsEq | IsNe | IsEqExact | IsNeExact => vec![fail, source(r), source(r)],
        IsEqImmed | IsNeImmed => vec![fail, register(r), immediate(r)],
        IsInRange => {
            let (a, b) = (r.of(&[-5, 0, 1, LEAST]), r.of(&[7, 1 << 40, MOST]));
            vec![fail, register(r), n(small(a).raw()), n(small(b).raw())]
        }
        IsInteger | IsFloat | IsNumber | IsAtom | IsPid | IsReference | IsPort | IsNil
        | IsBinary | IsBitstr | IsList | IsNonemptyList | IsTuple | IsFunction | IsBoolean
        | IsMap => {
            vec![fail, register(r)]
        }
        IsTupleOfArity => vec![fail, register(r), n(header(Subtag::Tuple, r.below(4)))],
        TestArity => {
            needs = Needs::Tuple;
            vec![fail, register(r), n(header(Subtag::Tuple, 3 + r.below(3)))]
        }
        IsTaggedTuple => {
            let h = header(Subtag::Tuple, 1 + r.below(3));
            vec![fail, register(r), n(h), n(am::OK.raw())]
        }
        SelectVal => {
            let mut arms: Vec<u64> = (0..1 + r.below(12)).map(|_| constant(r).word()).collect();
            arms.sort_unstable();
            arms.dedup();
            let k = arms.len();
            list = arms;
            for i in 0..k {
                list.push(arm(i));
            }
            vec![register(r), fail, n(k as u64)]
        }
        SelectArity => {
            let k = 1 + r.below(4);
            for i in 0..k {
                list.extend([header(Subtag::Tuple, i), arm(i)]);
            }
            vec![register(r), fail, n(2 * k as u64)]
        }
        JumpTable => {
            let k = 1 + r.below(9);
            list = (0..k).map(|i| if i == 2 { 0 } else { arm(i) }).collect();
            let first = r.of(&[0i64, 1, -3, 55, 1 << 40]);
            vec![register(r), fail, n(first as u64), n(k as u64)]
        }
        Add | Sub | Mul | IntDiv | Rem | Band | Bor | Bxor | Bsl | Bsr => {
            vec![fail, source(r), source(r), register(r), live]
        }
        FLoad | FConv => vec![source(r), n(8 * r.below(4) as u64)],
        FStore => vec![n(8 * r.below(4) as u64), register(r)],
        FMove => vec![n(8 * r.below(4) as u64), n(8 * r.below(4) as u64)],
        FAdd | FSub | FMul | FDiv => (0..3).map(|_| n(8 * r.below(4) as u64)).collect(),
        GetMapElements => {
            let k = 1 + r.below(3);
            let mut keys = [am::ERROR, am::FALSE, am::OK];
            keys.sort_by_key(|k| k.raw());
            for key in &keys[..k] {
                // The map's own register is written last, if at all.
                list.extend([key.raw(), Value::X(4 + r.below(5) as u32).source_word()]);
            }
            vec![fail, Value::X(r.below(4) as u32), n(2 * k as u64)]
        }
        BsContext => vec![fail, register(r), live],
        BsGetPosition => vec![register(r), register(r), live],
        BsGetByte => vec![fail, register(r), register(r)],
        BsGetSmall => {
            let bits = 1 + r.below(56) as u64;
            vec![fail, register(r), n(bits), n(0), register(r)]
        }
        BsSkipFixed => vec![fail, register(r), n(r.below(100) as u64)],
        BsTestTail => vec![fail, register(r), n(r.below(65) as u64)],
        BsTestUnit => vec![fail, register(r), n(r.of(&[1, 2, 7, 8, 16, 128]))],
        BsGetUtf => vec![fail, register(r), n(8), n(0), register(r)],
        BsSkipUtf => vec![fail, register(r), n(8), n(0)],
        BsNextByte => vec![fail, register(r), register(r), live],
        BsContextPosition => vec![register(r), register(r), live],
        BsNextBytePosition => {
            // The context is read once more behind the position.
            let context = register(r);
            let position = Value::X(XS as u32 - 1);
            if context == position {
                return case(op, r);
            }
            vec![fail, context, position, register(r), live]
        }
        MoveJump => vec![source(r), register(r), fail],
        _ => return None,
    };
    needs = match op {
        GetList | GetHd | GetTl => Needs::Cons,
        UpdateRecord => Needs::Triple,
        GetTupleElement | GetTupleElementFar | GetTupleElements2 | TestArity => Needs::Tuple,
        BsGetPosition | BsGetByte | BsGetSmall | BsSkipFixed | BsTestTail | BsTestUnit
        | BsGetUtf | BsSkipUtf | BsNextByte | BsContextPosition | BsNextBytePosition => {
            Needs::Context
        }
        _ => needs,
    };
    let live = match op {
        TryCase => 3,
        CatchEnd => 1,
        _ => XS,
    };
    Some(Case {
        op,
        operands,
        list,
        needs,
        live,
    })
}

/// A label of a list before its distance is known.
fn arm(i: usize) -> u64 {
    (1 << 48) | (i as u64 % 6)
}

/// The words of a function of that instruction, and where its entry is. Behind it comes what machine code leaves to the interpreter
/// without a step, so that the test sees where the instruction has led to.
fn words(c: &Case) -> Option<(Vec<u64>, u32)> {
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
    let entry = info.len();
    let mut code = info;
    let size = packed(c.op, &c.operands).ok()?.len() + c.list.len();
    let operands: Vec<Value> = c
        .operands
        .iter()
        .map(|&v| match v {
            Value::L(FAIL) => Value::L(size as i32 + 1),
            v => v,
        })
        .collect();
    code.extend(packed(c.op, &operands).ok()?);
    for &w in &c.list {
        code.push(match (c.op.row().list, w >> 48) {
            (Some(List::Switch | List::ArityArms | List::Arms | List::Labels), 1) => {
                (size as u64) + 2 + (w & 0xFF)
            }
            _ => w,
        });
    }
    for _ in 0..10 {
        code.extend(packed(Op::ProcessExit, &[]).ok()?);
    }
    Some((code, entry as u32))
}

/// Goes on by steps until the instruction is over: the word that is next, from the entry.
fn by_steps(w: &mut World, code: &[u64], entry: u32) -> u64 {
    let first = code.as_ptr() as u64 + u64::from(entry) * 8;
    let mut pc = first as *const u64;
    for _ in 0..4 {
        // SAFETY: an instruction of the code.
        pc = unsafe { STEP[pc.read() as u16 as usize](&mut *w.cx, pc) };
        if pc.is_null() {
            return 0;
        }
        if pc as u64 != first {
            return (pc as u64 - first) / 8;
        }
    }
    panic!("it runs again and again");
}

#[test]
fn machine_code_does_what_steps_do() {
    purlin_runtime::bif::install();
    purlin_term::region::init();
    let number = |name: &str, or: u64| {
        let set = std::env::var(name).ok();
        set.and_then(|v| v.parse().ok()).unwrap_or(or)
    };
    let (seed, rounds) = (number("OPS_SEED", 1), number("OPS_ROUNDS", 150));
    let only = std::env::var("OPS_ONLY").ok();
    let mut area = Area::new();
    purlin_term::fun::set_uncompiled(area.stubs.local as u32);
    let (steps, helpers) = (steps(), helpers());
    let stubs_end = area.used;
    let mut seen: Vec<Op> = Vec::new();
    let mut wrong = Vec::new();
    let (mut cases, mut left) = (0, 0);
    for op in (0..VARIANTS as u16).filter_map(Op::of) {
        let name = op.row().name;
        if seen.contains(&op) || only.as_ref().is_some_and(|o| o != name) {
            continue;
        }
        seen.push(op);
        let mut r = Random(seed.wrapping_mul(1 << 20) + op as u64);
        let mut in_code = 0;
        for _ in 0..rounds {
            let Some(c) = case(op, &mut r) else { break };
            let Some((code, entry)) = words(&c) else {
                continue;
            };
            let full = op.row().effects.collects && r.below(3) == 0;
            let s = r.below(1 << 40) as u64;
            let env = Env {
                fields: FIELDS,
                helpers,
                stubs: area.stubs,
                steps: &steps,
                targets: TARGETS,
                changes_code: &|_| false,
                native: &|_| None,
                natives_traced: 0,
                stressed: false,
                annotated: false,
                chaos: false,
                no_value: Term::NON_VALUE.raw(),
                true_word: am::TRUE.raw(),
                false_word: am::FALSE.raw(),
            };
            let f = Function {
                code: &code,
                base: code.as_ptr() as u64,
                start: 0,
                entry,
                end: code.len() as u32,
                arity: XS as u32,
            };
            let made = compile(f, &env).expect("code that is compiled");
            area.used = stubs_end;
            let to = area.next();
            area.put(&made.code.place(to).expect("all is near"));
            let (mut a, mut b) = (World::new(s, c.needs, full), World::new(s, c.needs, full));
            let before = a.state(XS, 1);
            assert_eq!(before, b.state(XS, 1), "two processes alike");
            let next_a = by_steps(&mut a, &code, entry);
            let first = code.as_ptr() as u64 + u64::from(entry) * 8;
            // SAFETY: the stub that enters machine code; the registers hold terms.
            let next = unsafe {
                let enter: extern "C" fn(*mut Cx, u64) -> u64 =
                    std::mem::transmute(area.stubs.enter as usize);
                // Behind the part that counts a call.
                enter(&mut *b.cx, to + u64::from(purlin_jit::stubs::INNER))
            };
            let next_b = match next & !1 {
                0 => 0,
                n if n == first => {
                    left += 1;
                    by_steps(&mut b, &code, entry)
                }
                n => {
                    in_code += 1;
                    (n - first) / 8
                }
            };
            cases += 1;
            let (sa, sb) = (a.state(c.live, next_a), b.state(c.live, next_b));
            if sa != sb {
                let d: Vec<String> = sa
                    .iter()
                    .zip(&sb)
                    .filter(|(x, y)| x != y)
                    .map(|(x, y)| format!("    step {x}\n    code {y}"))
                    .collect();
                wrong.push(format!(
                    "{name} {:?} {:x?} full {full}\n  before {before:?}\n{}",
                    c.operands,
                    c.list,
                    d.join("\n")
                ));
                break;
            }
        }
        if case(op, &mut r).is_some() {
            assert!(
                in_code > 0 || rounds < 20,
                "{name} never ran in machine code"
            );
        }
    }
    println!("{cases} instructions, {left} left to the interpreter");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
