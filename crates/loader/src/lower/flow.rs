//! Follows the flow of control through a function, and checks the conditions for running it. X and
//! Y registers hold terms when they are read or a collection looks at them, frames are made and
//! dropped in pairs, and terms built on the heap fit the reserved words.
//!
//! Types are not followed: code that takes the head of a term that is no cons cell is the
//! compiler's fault, and not found here.

use super::words::{FUN_WORDS, alloc_words};
use crate::error::{Fault, LoadError};
use crate::file::BeamFile;
use crate::generic::{Function, GenericCode, Instr, Operand};
use purlin_isa::genops::{self as g, Kind};

/// Arity of the function that starts at each entry label.
pub(super) struct Arities(Vec<Option<u32>>);

impl Arities {
    pub(super) fn of(code: &GenericCode) -> Arities {
        let mut all = vec![None; code.labels.len()];
        for f in &code.functions {
            all[f.entry_label as usize] = Some(f.arity);
        }
        Arities(all)
    }
    pub(super) fn get(&self, label: u32) -> Option<u32> {
        *self.0.get(label as usize)?
    }
}

/// Whether these are the operands of a `debug_line` for the head of a function, which can't have a
/// breakpoint.
pub(super) fn is_function_line(file: &BeamFile, a: &[Operand]) -> bool {
    matches!(a[0], Operand::Atom(n) if file.atom(n) == "entry")
}

/// The findings of the check.
#[derive(Default)]
pub(super) struct Flow {
    /// Some Y registers may be looked at before they are written: frames must be cleared when they
    /// are made.
    pub clear_frames: bool,
    /// The end of the function can be reached.
    pub falls_off: bool,
    /// Labels of exception handlers that follow calls which, as the compiler knows, never return.
    pub guarded: Vec<u32>,
}

/// A set of register numbers below 64 times `W`.
#[derive(Clone, Copy, PartialEq)]
struct Set<const W: usize>([u64; W]);

/// Number of words for all registers, and for those of nearly all functions.
const ALL: usize = 16;
const FEW: usize = 1;
/// If all numbers in a function are below this, no register is beyond those of [`FEW`]: handlers
/// and the like use a few more.
const FEW_NUMBERS: usize = 56;

impl<const W: usize> Set<W> {
    const EMPTY: Self = Set([0; W]);
    fn below(n: usize) -> Self {
        let mut s = Self::EMPTY;
        for (i, w) in s.0.iter_mut().enumerate() {
            *w = match n.saturating_sub(64 * i) {
                0 => 0,
                k if k >= 64 => u64::MAX,
                k => (1 << k) - 1,
            };
        }
        s
    }
    fn has(&self, n: usize) -> bool {
        self.0[n / 64 % W] >> (n % 64) & 1 != 0
    }
    fn add(&mut self, n: usize) {
        self.0[n / 64 % W] |= 1 << (n % 64);
    }
    fn remove(&mut self, n: usize) {
        self.0[n / 64 % W] &= !(1 << (n % 64));
    }
    fn and(self, o: Self) -> Self {
        Set(std::array::from_fn(|i| self.0[i] & o.0[i]))
    }
    fn or(self, o: Self) -> Self {
        Set(std::array::from_fn(|i| self.0[i] | o.0[i]))
    }
    fn includes(&self, o: &Self) -> bool {
        self.0.iter().zip(&o.0).all(|(a, b)| a & b == *b)
    }
    /// Returns the numbers from `n` on, less `n`.
    fn shift(&self, n: usize) -> Self {
        let mut s = Self::EMPTY;
        for i in n..64 * W {
            if self.has(i) {
                s.add(i - n);
            }
        }
        s
    }
}

/// Whether there is a frame.
#[derive(Clone, Copy, PartialEq)]
enum Frame {
    None,
    Of(usize),
    /// Its size depends on the path, and is at least this: only exceptions may follow.
    AtLeast(usize),
}

impl Frame {
    fn size(self) -> usize {
        match self {
            Frame::None => 0,
            Frame::Of(n) | Frame::AtLeast(n) => n,
        }
    }
}

#[derive(Clone, PartialEq)]
struct State<const W: usize> {
    frame: Frame,
    /// Words that are reserved on the heap.
    room: u32,
    /// A bitstring is under construction, and nothing that may move or free it has run since: the
    /// place to write is known.
    building: bool,
    x: Set<W>,
    y: Set<W>,
    /// Y registers that hold the mark of a catch.
    catches: Set<W>,
}

impl<const W: usize> State<W> {
    /// Whether all registers of the frame hold terms.
    fn is_whole(&self) -> bool {
        self.y.includes(&Set::below(self.frame.size()))
    }
}

struct Walk<'a, const W: usize> {
    file: &'a BeamFile<'a>,
    code: &'a GenericCode,
    f: &'a Function,
    arities: &'a Arities,
    /// Whether lines may have breakpoints.
    breaks: bool,
    at: &'a mut AtLabels<W>,
    todo: Vec<u32>,
    flow: Flow,
}

/// The states at the labels of a function. One value serves all functions of a module, since most
/// have few labels.
struct AtLabels<const W: usize> {
    /// For each label, the index of its state, counted from 1; 0: there is none.
    index: Vec<u32>,
    /// The states, with their labels.
    states: Vec<(u32, State<W>)>,
}

impl<const W: usize> Default for AtLabels<W> {
    fn default() -> Self {
        AtLabels {
            index: Vec::new(),
            states: Vec::new(),
        }
    }
}

impl<const W: usize> AtLabels<W> {
    fn clear(&mut self) {
        for (l, _) in self.states.drain(..) {
            self.index[l as usize] = 0;
        }
    }
    fn get(&mut self, label: u32) -> Option<&mut State<W>> {
        let i = *self.index.get(label as usize)?;
        self.states
            .get_mut((i as usize).wrapping_sub(1))
            .map(|s| &mut s.1)
    }
    /// Records the state of a label that has none.
    fn insert(&mut self, label: u32, s: State<W>) {
        let l = label as usize;
        if self.index.len() <= l {
            self.index.resize(l + 1, 0);
        }
        self.states.push((label, s));
        self.index[l] = self.states.len() as u32;
    }
}

type Step = Result<bool, LoadError>;

fn bad<T>(what: &'static str) -> Result<T, LoadError> {
    Err(Fault::Flow(what).into())
}

/// Memory that is reused for the next function.
#[derive(Default)]
pub(super) struct Kept {
    few: AtLabels<FEW>,
    all: AtLabels<ALL>,
}

/// Checks one function. `breaks`: its lines may have breakpoints.
pub(super) fn check(
    file: &BeamFile,
    code: &GenericCode,
    f: &Function,
    arities: &Arities,
    breaks: bool,
    kept: &mut Kept,
) -> Result<Flow, LoadError> {
    // If it fails, the full check decides, to be on the safe side.
    if has_few(code, f)
        && let Ok(flow) = check_with(file, code, f, arities, breaks, &mut kept.few)
    {
        return Ok(flow);
    }
    check_with(file, code, f, arities, breaks, &mut kept.all)
}

/// Whether all numbers of registers, and all others that may be numbers of registers, are small.
fn has_few(code: &GenericCode, f: &Function) -> bool {
    let few = |o: &Operand| match o.untyped() {
        Operand::X(n) | Operand::Y(n) => (n as usize) < FEW_NUMBERS,
        Operand::U(n) => n < FEW_NUMBERS as u64,
        _ => true,
    };
    // Whether it is an index into a table of the module.
    let place = |k: Kind| {
        matches!(
            k,
            Kind::Import | Kind::Lambda | Kind::StrOff | Kind::Line | Kind::Def
        )
    };
    let instr = |i: &Instr| {
        let kinds = g::row(i.op).map_or(&[][..], |r| r.kinds);
        let args = code.args(i);
        kinds.len() >= args.len()
            && kinds
                .iter()
                .zip(args)
                .all(|(&k, o)| place(k) || (few(o) && code.list(*o).iter().all(few)))
    };
    (f.arity as usize) < FEW_NUMBERS
        && code.instrs[f.start as usize..f.end as usize]
            .iter()
            .all(instr)
}

/// The state at a label of a function, for all paths to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtLabel {
    pub label: u32,
    /// Number of Y registers of the frame; `None`: there is no frame.
    pub frame: Option<usize>,
    /// The frame is the same one on each path, not only one of the same size.
    pub is_one_frame: bool,
    /// X registers that hold terms.
    pub x: Vec<u32>,
    /// Y registers that hold terms, if frames are not cleared.
    pub y: Vec<u32>,
    /// Frames are cleared when they are made: all Y registers hold terms.
    pub clear_frames: bool,
}

/// Computes the states at all reachable labels again, to check other analyses of the code against
/// them.
pub fn states(
    file: &BeamFile,
    code: &GenericCode,
    f: &Function,
) -> Result<Vec<AtLabel>, LoadError> {
    let mut at = AtLabels::<ALL>::default();
    let flow = check_with(file, code, f, &Arities::of(code), false, &mut at)?;
    let numbers = |s: &Set<ALL>| {
        (0..64 * ALL as u32)
            .filter(|&n| s.has(n as usize))
            .collect()
    };
    let state = |(label, s): &(u32, State<ALL>)| AtLabel {
        label: *label,
        frame: (s.frame != Frame::None).then(|| s.frame.size()),
        is_one_frame: !matches!(s.frame, Frame::AtLeast(_)),
        x: numbers(&s.x),
        y: numbers(&s.y),
        clear_frames: flow.clear_frames,
    };
    Ok(at.states.iter().map(state).collect())
}

fn check_with<const W: usize>(
    file: &BeamFile,
    code: &GenericCode,
    f: &Function,
    arities: &Arities,
    breaks: bool,
    at: &mut AtLabels<W>,
) -> Result<Flow, LoadError> {
    at.clear();
    let start = State {
        frame: Frame::None,
        room: 0,
        building: false,
        x: Set::below(f.arity as usize),
        y: Set::EMPTY,
        catches: Set::EMPTY,
    };
    let mut w = Walk {
        file,
        code,
        f,
        arities,
        breaks,
        at,
        todo: Vec::new(),
        flow: Flow::default(),
    };
    w.reach(f.entry_label, &start)?;
    // A state only ever loses registers and words, so this ends.
    while let Some(l) = w.todo.pop() {
        w.block(l)?;
    }
    Ok(w.flow)
}

/// Whether a label starts code that only exceptions lead to: it relies on four registers. A jump to
/// it follows a call that never returns.
pub(super) fn is_handler(code: &GenericCode, label: u32) -> bool {
    let at = code.labels[label as usize] as usize;
    let mut next = code.instrs.iter().skip(at + 1);
    next.find(|i| i.op != g::LINE)
        .is_some_and(|i| i.op == g::TRY_CASE)
}

impl<const W: usize> Walk<'_, W> {
    /// Records that control may go to `label` with that state.
    fn reach(&mut self, label: u32, s: &State<W>) -> Result<(), LoadError> {
        let at = self.code.labels[label as usize];
        if !(self.f.start..self.f.end).contains(&at) {
            return bad("a jump out of the function");
        }
        match self.at.get(label) {
            None => {
                self.at.insert(label, s.clone());
                self.todo.push(label);
            }
            Some(old) => {
                // The code that follows may collect without knowing which registers there are: all
                // of them must hold terms.
                if old.frame != s.frame && !(old.is_whole() && s.is_whole()) {
                    self.flow.clear_frames = true;
                }
                let met = State {
                    frame: if old.frame == s.frame {
                        s.frame
                    } else {
                        Frame::AtLeast(old.frame.size().min(s.frame.size()))
                    },
                    room: old.room.min(s.room),
                    building: old.building && s.building,
                    x: old.x.and(s.x),
                    y: old.y.and(s.y),
                    catches: old.catches.or(s.catches),
                };
                if met != *old {
                    *old = met;
                    self.todo.push(label);
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, label: u32) -> Result<(), LoadError> {
        let Some(mut s) = self.at.get(label).cloned() else {
            return Ok(());
        };
        let mut i = self.code.labels[label as usize] as usize + 1;
        while i < self.f.end as usize {
            let ins = self.code.instrs[i];
            if ins.op == g::LABEL {
                let n = Self::u(self.code.args(&ins)[0]) as u32;
                if !self.is_handler(n) {
                    self.reach(n, &s)?;
                } else if !self.flow.guarded.contains(&n) {
                    self.flow.guarded.push(n);
                }
                return Ok(());
            }
            if !self.step(&ins, &mut s)? {
                return Ok(());
            }
            i += 1;
        }
        self.flow.falls_off = true;
        Ok(())
    }

    fn is_handler(&self, label: u32) -> bool {
        is_handler(self.code, label)
    }

    fn u(o: Operand) -> usize {
        match o {
            Operand::U(n) => n as usize,
            _ => 0,
        }
    }
    fn need_x(s: &State<W>, n: usize) -> Result<(), LoadError> {
        if n > 64 * W || !s.x.includes(&Set::below(n)) {
            return bad("an X register that holds nothing");
        }
        Ok(())
    }
    fn need_frame(s: &State<W>) -> Result<usize, LoadError> {
        match s.frame {
            Frame::Of(n) => Ok(n),
            _ => bad("no stack frame"),
        }
    }
    fn read(&mut self, s: &mut State<W>, o: Operand) -> Result<(), LoadError> {
        match o.untyped() {
            Operand::X(n) if !s.x.has(n as usize) => bad("an X register that holds nothing"),
            Operand::Y(n) => {
                if n as usize >= s.frame.size() {
                    return bad("a Y register outside the stack frame");
                }
                // As a value it could get into another frame, and lead an exception to code for
                // this one.
                if s.catches.has(n as usize) {
                    return bad("the mark of a catch is read");
                }
                if !s.y.has(n as usize) {
                    self.flow.clear_frames = true;
                    s.y.add(n as usize);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
    fn write(s: &mut State<W>, o: Operand) -> Result<(), LoadError> {
        match o.untyped() {
            Operand::X(n) => s.x.add(n as usize),
            Operand::Y(n) => {
                if n as usize >= s.frame.size() {
                    return bad("a Y register outside the stack frame");
                }
                s.y.add(n as usize);
                s.catches.remove(n as usize);
            }
            _ => {}
        }
        Ok(())
    }
    /// Records that a collection may happen, with `live` X registers.
    fn collect(&mut self, s: &mut State<W>, live: usize) -> Result<(), LoadError> {
        Self::need_x(s, live)?;
        s.x = Set::below(live);
        s.room = 0;
        s.building = false;
        if let Frame::Of(n) = s.frame {
            let all = Set::below(n);
            if !s.y.includes(&all) {
                self.flow.clear_frames = true;
                s.y = all;
            }
        }
        Ok(())
    }
    /// Checks that a local call passes as many arguments as the function takes.
    fn called(&self, a: &[Operand]) -> Result<(), LoadError> {
        let takes = match a[1] {
            Operand::Label(l) => self.arities.get(l),
            _ => None,
        };
        match takes {
            Some(n) if n as usize == Self::u(a[0]) => Ok(()),
            _ => bad("a call with another number of arguments"),
        }
    }
    fn after_call(&mut self, s: &mut State<W>, args: usize) -> Step {
        Self::need_x(s, args)?;
        Self::need_frame(s)?;
        self.collect(s, 0)?;
        s.x.add(0);
        Ok(true)
    }
    fn take(s: &mut State<W>, words: usize) -> Result<(), LoadError> {
        match usize::try_from(s.room)
            .ok()
            .and_then(|r| r.checked_sub(words))
        {
            Some(left) => {
                s.room = left as u32;
                Ok(())
            }
            None => bad("more built on the heap than was reserved"),
        }
    }

    /// Checks an instruction that calls, returns or raises `function_clause`. Returns whether the
    /// next one may follow; `None` if it is none of these.
    fn call(&mut self, ins: &Instr, s: &mut State<W>) -> Result<Option<bool>, LoadError> {
        let a = self.code.args(ins);
        let follows = match ins.op {
            g::FUNC_INFO => {
                Self::need_x(s, Self::u(a[2]))?;
                false
            }
            g::CALL => {
                self.called(a)?;
                self.after_call(s, Self::u(a[0]))?
            }
            g::CALL_EXT => {
                if self.raises(a[1]) {
                    Self::need_x(s, Self::u(a[0]))?;
                    return Ok(Some(false));
                }
                self.after_call(s, Self::u(a[0]))?
            }
            g::CALL_FUN => self.after_call(s, Self::u(a[0]) + 1)?,
            g::CALL_FUN2 => {
                self.read(s, a[2])?;
                self.after_call(s, Self::u(a[1]))?
            }
            g::APPLY => self.after_call(s, Self::u(a[0]) + 2)?,
            g::CALL_EXT_LAST | g::CALL_EXT_ONLY if self.raises(a[1]) => {
                // The frame is not dropped: functions with frames of several sizes share code that
                // only ends this way.
                Self::need_x(s, Self::u(a[0]))?;
                false
            }
            g::CALL_LAST => {
                self.called(a)?;
                self.tail(s, Self::u(a[0]), Some(a[2]))?
            }
            g::CALL_EXT_LAST => self.tail(s, Self::u(a[0]), Some(a[2]))?,
            g::APPLY_LAST => self.tail(s, Self::u(a[0]) + 2, Some(a[1]))?,
            g::CALL_ONLY => {
                self.called(a)?;
                self.tail(s, Self::u(a[0]), None)?
            }
            g::CALL_EXT_ONLY => self.tail(s, Self::u(a[0]), None)?,
            g::RETURN => self.tail(s, 1, None)?,
            _ => return Ok(None),
        };
        Ok(Some(follows))
    }

    /// Checks an instruction that makes, drops or trims a frame. Returns whether the next one may
    /// follow; `None` if it is none of these.
    fn frame(&mut self, ins: &Instr, s: &mut State<W>) -> Result<Option<bool>, LoadError> {
        let a = self.code.args(ins);
        match ins.op {
            g::ALLOCATE | g::ALLOCATE_ZERO | g::ALLOCATE_HEAP | g::ALLOCATE_HEAP_ZERO => {
                if s.frame != Frame::None {
                    return bad("a stack frame inside a stack frame");
                }
                let heap = matches!(ins.op, g::ALLOCATE_HEAP | g::ALLOCATE_HEAP_ZERO);
                self.collect(s, Self::u(a[1 + usize::from(heap)]))?;
                if heap {
                    s.room = alloc_words(a[1]);
                }
                let n = Self::u(a[0]);
                s.frame = Frame::Of(n);
                let zero = matches!(ins.op, g::ALLOCATE_ZERO | g::ALLOCATE_HEAP_ZERO);
                s.y = if zero { Set::below(n) } else { Set::EMPTY };
                s.catches = Set::EMPTY;
            }
            g::DEALLOCATE => {
                if Self::need_frame(s)? != Self::u(a[0]) {
                    return bad("a stack frame of another size is dropped");
                }
                s.frame = Frame::None;
                s.y = Set::EMPTY;
                s.catches = Set::EMPTY;
            }
            g::TRIM => {
                let n = Self::u(a[0]);
                let Some(left) = Self::need_frame(s)?.checked_sub(n) else {
                    return bad("a stack frame is trimmed by more than its size");
                };
                if s.catches != Set::EMPTY {
                    return bad("a stack frame is trimmed inside a catch");
                }
                s.frame = Frame::Of(left);
                s.y = s.y.shift(n);
            }
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// Checks an instruction that opens or closes a catch or try. Returns whether the next one may
    /// follow; `None` if it is none of these.
    fn handler(&mut self, ins: &Instr, s: &mut State<W>) -> Result<Option<bool>, LoadError> {
        let a = self.code.args(ins);
        match ins.op {
            g::CATCH | g::TRY => {
                Self::write(s, a[0])?;
                if let Operand::Y(n) = a[0].untyped() {
                    s.catches.add(n as usize);
                }
                let mut handler = s.clone();
                handler.x = Set::below(4);
                handler.room = 0;
                handler.building = false;
                match a[1] {
                    Operand::Label(l) if l != 0 => self.reach(l, &handler)?,
                    _ => {}
                }
            }
            g::CATCH_END => {
                Self::need_x(s, 1)?;
                Self::write(s, a[0])?;
                self.collect(s, 1)?;
            }
            g::TRY_END => {
                Self::write(s, a[0])?;
            }
            g::TRY_CASE => {
                Self::need_x(s, 4)?;
                Self::write(s, a[0])?;
                s.x = Set::below(3);
            }
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// Checks one instruction. Returns whether the next one may follow.
    fn step(&mut self, ins: &Instr, s: &mut State<W>) -> Step {
        let code = self.code;
        let a = code.args(ins);
        match ins.op {
            _ if let Some(follows) = self.call(ins, s)? => Ok(follows),
            _ if let Some(follows) = self.frame(ins, s)? => Ok(follows),
            _ if let Some(follows) = self.handler(ins, s)? => Ok(follows),
            g::LOOP_REC => {
                // The process may have waited here, and may be collected.
                self.collect(s, 0)?;
                self.target(a[0], s)?;
                Self::write(s, a[1])?;
                Ok(true)
            }
            g::LOOP_REC_END | g::WAIT | g::WAIT_TIMEOUT => {
                // In the second round of a receive, while the timer runs, the register may be dead:
                // then it isn't read.
                if ins.op == g::WAIT_TIMEOUT && !matches!(a[1].untyped(), Operand::X(_)) {
                    self.read(s, a[1])?;
                }
                self.collect(s, 0)?;
                self.target(a[0], s)?;
                Ok(ins.op == g::WAIT_TIMEOUT)
            }
            g::SEND => {
                Self::need_x(s, 2)?;
                self.collect(s, 1)?;
                Ok(true)
            }
            g::RAW_RAISE => {
                Self::need_x(s, 3)?;
                s.x = Set::below(1);
                Ok(true)
            }
            g::BUILD_STACKTRACE | g::BS_INIT_WRITABLE => {
                self.collect(s, 1)?;
                Ok(true)
            }
            g::MAKE_FUN2 => {
                let free = self.file.lambdas[Self::u(a[0])].num_free as usize;
                self.collect(s, free)?;
                s.x.add(0);
                Ok(true)
            }
            g::BS_MATCH => self.bs_match(s, a),
            g::ON_LOAD => {
                // The function is entered here when the module is loaded.
                let at = self.code.labels[self.f.entry_label as usize] as usize + 1;
                let first = self.code.instrs.get(at).map(|i| i.offset);
                if self.f.arity != 0 || first != Some(ins.offset) {
                    return bad("the on_load function has arguments, or does not begin here");
                }
                Ok(true)
            }
            g::JUMP if matches!(a[0], Operand::Label(l) if self.is_handler(l)) => Ok(false),
            g::SWAP => {
                self.read(s, a[0])?;
                self.read(s, a[1])?;
                Ok(true)
            }
            op => {
                self.general(ins, s)?;
                Ok(!matches!(
                    op,
                    g::JUMP
                        | g::SELECT_VAL
                        | g::SELECT_TUPLE_ARITY
                        | g::BADMATCH
                        | g::CASE_END
                        | g::TRY_CASE_END
                        | g::IF_END
                        | g::BADRECORD
                        | g::RAISE
                ))
            }
        }
    }

    /// Whether an import is a native that always raises.
    fn raises(&self, import: Operand) -> bool {
        self.file.known(Self::u(import)).is_some_and(|k| k.raises)
    }

    /// Whether an import is a native that takes nothing from the heap if it succeeds.
    fn makes_nothing(&self, import: Operand) -> bool {
        let known = self.file.known(Self::u(import));
        known.is_some_and(|k| k.makes_nothing)
    }

    /// Records a tail call or return with that many X registers; `frame` is dropped, or there must
    /// be none.
    fn tail(&mut self, s: &State<W>, args: usize, frame: Option<Operand>) -> Step {
        Self::need_x(s, args)?;
        let want = match frame {
            Some(n) => Frame::Of(Self::u(n)),
            None => Frame::None,
        };
        if s.frame != want {
            return bad("the function is left with a stack frame of another size");
        }
        Ok(false)
    }

    fn target(&mut self, o: Operand, s: &State<W>) -> Result<(), LoadError> {
        match o {
            Operand::Label(l) if l != 0 && self.is_handler(l) => {
                bad("a jump to an exception handler")
            }
            Operand::Label(l) if l != 0 => self.reach(l, s),
            _ => Ok(()),
        }
    }

    /// Checks that the registers which an instruction reads hold terms.
    fn reads(&mut self, ins: &Instr, kinds: &[Kind], s: &mut State<W>) -> Result<(), LoadError> {
        let code = self.code;
        let a = code.args(ins);
        // Any word may be compared with this immediate. The compiler does that after a guard's
        // native has failed, when the register only has its value on another path.
        let word_test = matches!(ins.op, g::IS_EQ_EXACT | g::IS_NE_EXACT)
            && a.iter()
                .any(|o| matches!(o, Operand::Atom(_) | Operand::Nil));
        for (&k, &o) in kinds.iter().zip(a) {
            match k {
                Kind::Src if word_test && matches!(o.untyped(), Operand::X(_)) => {}
                Kind::Src | Kind::Reg | Kind::Size | Kind::FSrc => self.read(s, o)?,
                Kind::SrcList | Kind::PairList | Kind::EnvList | Kind::UpdateList => {
                    for &m in code.list(o) {
                        self.read(s, m)?;
                    }
                }
                Kind::SegList => {
                    for m in code.list(o).chunks(6) {
                        for &v in m.iter().skip(4) {
                            if matches!(v, Operand::Fr(_) | Operand::Label(_)) {
                                return bad("a segment that is no value");
                            }
                            self.read(s, v)?;
                        }
                    }
                }
                Kind::FetchList => {
                    for m in code.list(o).iter().step_by(2) {
                        self.read(s, *m)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that an instruction takes no more words of the heap than are reserved, and follows
    /// the construction of bitstrings.
    fn takes(&self, ins: &Instr, s: &mut State<W>) -> Result<(), LoadError> {
        let code = self.code;
        let a = code.args(ins);
        match ins.op {
            g::PUT_LIST => Self::take(s, 2)?,
            g::PUT_TUPLE => Self::take(s, Self::u(a[0]).saturating_add(1))?,
            g::PUT_TUPLE2 => Self::take(s, code.list(a[1]).len() + 1)?,
            g::UPDATE_RECORD => {
                let size = Self::u(a[1]);
                Self::take(s, size.saturating_add(1))?;
                let mut indices = code.list(a[4]).iter().step_by(2).map(|&i| Self::u(i));
                if !indices.all(|i| (1..=size).contains(&i)) {
                    return bad("an element outside the record");
                }
            }
            // Natives may make terms, but many of those that guards call don't.
            g::BIF0 if !self.makes_nothing(a[0]) => s.room = 0,
            g::BIF1 | g::BIF2 | g::BIF3 if !self.makes_nothing(a[1]) => s.room = 0,
            // The bitstring is taken from the reserved words.
            g::BS_CONTEXT_TO_BINARY => s.room = 0,
            g::BS_INIT2 | g::BS_INIT_BITS | g::BS_APPEND => s.building = true,
            op if super::bit_ops::is_put(op) && !s.building => {
                return bad("no bit string is being built");
            }
            g::FMOVE if matches!(a[0], Operand::Fr(_)) && a[1].is_reg() => Self::take(s, 2)?,
            g::MAKE_FUN3 => {
                let words = FUN_WORDS + code.list(a[2]).len() as u32;
                s.room = s.room.saturating_sub(words);
            }
            g::BS_PRIVATE_APPEND => {
                s.room = 0;
                s.building = true;
            }
            g::RECV_MARKER_RESERVE => s.room = 0,
            _ => {}
        }
        Ok(())
    }

    /// Follows the kinds of operands: reads, then labels, then live registers, then writes.
    fn general(&mut self, ins: &Instr, s: &mut State<W>) -> Result<(), LoadError> {
        let code = self.code;
        let a = code.args(ins);
        let kinds = g::row(ins.op).map_or(&[][..], |r| r.kinds);
        self.reads(ins, kinds, s)?;
        // An op that fails after it has taken words from the heap leaves fewer than were reserved.
        let mut failed = s.clone();
        if kinds.contains(&Kind::Live) || matches!(ins.op, g::BIF1 | g::BIF2 | g::BIF3) {
            failed.room = 0;
        }
        for (&k, &o) in kinds.iter().zip(a) {
            match k {
                // Markers of OTP 23 and before name the receive loop, but do not jump.
                _ if matches!(ins.op, g::RECV_MARK | g::RECV_SET) => {}
                Kind::Fail | Kind::Target | Kind::FailOrAtom => self.target(o, &failed)?,
                Kind::ValueList | Kind::ArityList => {
                    for &m in code.list(o) {
                        self.target(m, s)?;
                    }
                }
                _ => {}
            }
        }
        for (&k, &o) in kinds.iter().zip(a) {
            let breaks = self.breaks && !is_function_line(self.file, a);
            if k == Kind::Live && (ins.op != g::DEBUG_LINE || breaks) {
                self.collect(s, Self::u(o))?;
            }
        }
        for (&k, &o) in kinds.iter().zip(a) {
            if k == Kind::Alloc {
                s.room = alloc_words(o);
            }
        }
        self.takes(ins, s)?;
        for (&k, &o) in kinds.iter().zip(a) {
            match k {
                Kind::Dst | Kind::FDst | Kind::Y => Self::write(s, o)?,
                Kind::YList => {
                    for &m in code.list(o) {
                        Self::write(s, m)?;
                    }
                }
                Kind::FetchList => {
                    for m in code.list(o).iter().skip(1).step_by(2) {
                        Self::write(s, *m)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn bs_match(&mut self, s: &mut State<W>, a: &[Operand]) -> Step {
        self.read(s, a[1])?;
        // The commands before the failing one may have made terms.
        s.room = 0;
        self.target(a[0], s)?;
        let m = self.code.list(a[2]);
        let mut i = 0;
        while i < m.len() {
            let name = match m[i] {
                Operand::Atom(n) => self.file.atom(n),
                _ => "",
            };
            let (live, dst, len) = match name {
                "ensure_at_least" => (None, None, 3),
                "ensure_exactly" | "skip" => (None, None, 2),
                "integer" | "binary" => (m.get(i + 1), m.get(i + 5), 6),
                "get_tail" => (m.get(i + 1), m.get(i + 3), 4),
                "=:=" => (None, None, 4),
                _ => return bad("a match by a command that is not known"),
            };
            if i + len > m.len() {
                return bad("a match that ends within a command");
            }
            if let Some(&n) = live {
                let n = match n {
                    Operand::Int(n) => n as usize,
                    n => Self::u(n),
                };
                let written = s.x;
                Self::need_x(s, n)?;
                self.collect(s, n)?;
                // Registers that earlier commands wrote may be read after this one all the same,
                // and collections look at them.
                s.x = s.x.or(written.and(Set::below(n.max(1))));
            }
            if let Some(&d) = dst {
                if !d.is_reg() {
                    return bad("the destination of a match is not a register");
                }
                Self::write(s, d)?;
            }
            i += len;
        }
        Ok(true)
    }
}
