//! Packing: operands into 16-bit units, units into words, labels into offsets.

use super::fuse::{fuse, split};
use purlin_isa::ops::{Form, Kind, Op, words};

/// An operand about to be packed. Registers by number; lists take words, see [`Arg::source_raw`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    X(u32),
    Y(u32),
    /// A term word.
    C(u64),
    /// A label by number; 0: none.
    L(u32),
    H(u32),
    W(u32),
    Q(u64),
}

impl Arg {
    /// The word of a constant as a plain 64-bit operand.
    pub fn raw(self) -> Arg {
        Arg::Q(self.word())
    }
    /// The word of a constant; 0 for anything else.
    pub fn word(self) -> u64 {
        match self {
            Arg::C(w) | Arg::Q(w) => w,
            _ => 0,
        }
    }
    /// A source as the word that is told apart at run time.
    pub(crate) fn source_raw(self) -> Arg {
        match self {
            Arg::X(n) => Arg::Q((u64::from(n) * 8) << 4),
            Arg::Y(n) => Arg::Q(((u64::from(n) + 1) * 8) << 4 | 4),
            Arg::C(w) => Arg::Q(w),
            a => a,
        }
    }
    /// The form that it takes as an operand of that kind.
    fn form(self, kind: Kind) -> Form {
        match (kind.forms(), self) {
            (&[form], _) => form,
            (_, Arg::X(_)) => Form::X,
            (_, Arg::Y(_)) => Form::Y,
            _ => Form::C,
        }
    }
}

struct Fixup {
    /// Word of the instruction.
    at: u32,
    /// Unit in the code where the offset goes; in a list it is a whole word.
    unit: usize,
    whole: bool,
    label: u32,
}

/// Code under construction.
pub(crate) struct Emitter {
    pub words: Vec<u64>,
    /// Offset of each label in words.
    pub labels: Vec<u32>,
    /// From this offset on, that item of the line table.
    pub lines: Vec<(u32, u32)>,
    /// An operand was larger than its place: the code must not run.
    pub too_large: bool,
    /// Whether an instruction has operands that its row has no variant for: the module is refused.
    pub unfit: bool,
    fixups: Vec<Fixup>,
    units: Vec<u16>,
    /// The last instruction, and where it starts; none where a label or a list follows it.
    last: Option<(u32, Op, Vec<Arg>)>,
    /// The one before it, if nothing stands between them: what the last one becomes with the next may be a part of that.
    prior: Option<(u32, Op, Vec<Arg>)>,
}

impl Emitter {
    pub fn new(labels: usize) -> Emitter {
        Emitter {
            words: Vec::new(),
            labels: vec![u32::MAX; labels],
            lines: Vec::new(),
            too_large: false,
            unfit: false,
            fixups: Vec::new(),
            units: Vec::new(),
            last: None,
            prior: None,
        }
    }
    /// Offset of the next instruction.
    pub fn here(&self) -> u32 {
        self.words.len() as u32
    }
    /// The label stands here.
    pub(crate) fn label(&mut self, label: usize) {
        self.labels[label] = self.here();
        self.barrier();
    }
    /// The next instruction is not to become a part of the one before it.
    pub fn barrier(&mut self) {
        self.last = None;
        self.prior = None;
    }
    /// From here on, that item of the line table.
    pub fn line(&mut self, item: u32) {
        let at = (self.here(), item);
        match self.lines.last_mut() {
            Some(last) if last.0 == at.0 => *last = at,
            _ => self.lines.push(at),
        }
    }
    /// Takes back everything from `start` on, where the last instruction starts.
    fn take_back(&mut self, start: u32) {
        self.words.truncate(start as usize);
        while self.fixups.last().is_some_and(|f| f.at == start) {
            self.fixups.pop();
        }
        // What stood before an instruction that becomes a part of the one before it, stands before that.
        if let Some(l) = self.lines.last().copied().filter(|l| l.0 > start) {
            self.lines.pop();
            match self.lines.last_mut() {
                Some(p) if p.0 == start => p.1 = l.1,
                _ => self.lines.push((start, l.1)),
            }
        }
    }
    /// Appends an instruction, or makes it a part of the last one.
    ///
    /// # Panics
    /// If there are more or fewer operands than the row says: a fault of the lowering, not of the module.
    pub fn op(&mut self, op: Op, args: &[Arg]) {
        let prior = self.prior.take();
        let Some((start, last, prev)) = self.last.take() else {
            return self.plain(op, args);
        };
        // The place of an op that may fail has to stay known.
        let line_between = self.lines.last().is_some_and(|l| l.0 > start);
        let fixed = line_between && matches!(last, Op::Add | Op::Sub);
        if !fixed && let Some((op, args)) = fuse((last, &prev), (op, args)) {
            self.take_back(start);
            self.last = prior;
            return self.op(op, &args);
        }
        if let Some((before, after)) = split(last, &prev, op)
            && let Some((op, args)) = fuse((after.0, &after.1), (op, args))
        {
            let here = self.lines.last().copied().filter(|l| l.0 > start);
            self.take_back(start);
            if here.is_some() {
                // The line is the call's.
                let line = self.lines.pop().map_or(0, |l| l.1);
                self.plain(before.0, &before.1);
                self.line(line);
            } else {
                self.plain(before.0, &before.1);
            }
            return self.plain(op, &args);
        }
        self.plain(op, args);
        self.prior = Some((start, last, prev));
    }
    fn plain(&mut self, op: Op, args: &[Arg]) {
        self.last = Some((self.here(), op, args.to_vec()));
        let row = op.row();
        assert_eq!(row.operands.len(), args.len(), "operands of {}", row.name);
        let forms: Vec<Form> = args
            .iter()
            .zip(row.operands)
            .map(|(a, o)| a.form(o.kind))
            .collect();
        let number = match op.variant(&forms) {
            Some(n) => n,
            None => {
                debug_assert!(false, "no variant of {} for {args:?}", row.name);
                self.unfit = true;
                return;
            }
        };
        let at = self.here();
        let mut u = std::mem::take(&mut self.units);
        u.clear();
        u.push(number);
        for (a, f) in args.iter().zip(&forms) {
            match (f, *a) {
                (Form::X, Arg::X(n)) => u.push((n * 8) as u16),
                (Form::Y, Arg::Y(n)) => u.push(((n + 1) * 8) as u16),
                (Form::D, Arg::X(n)) => u.push((n * 8) as u16),
                (Form::D, Arg::Y(n)) => u.push(((n + 1) * 8) as u16 | 1),
                (Form::L, Arg::L(label)) => {
                    let unit = at as usize * 4 + u.len();
                    if label != 0 {
                        self.fixups.push(Fixup {
                            at,
                            unit,
                            whole: false,
                            label,
                        });
                    }
                    u.extend([0, 0]);
                }
                (Form::H, Arg::H(n)) => {
                    self.too_large |= n > u32::from(u16::MAX);
                    u.push(n as u16);
                }
                (Form::W, Arg::W(n)) => u.extend([n as u16, (n >> 16) as u16]),
                (_, a) => {
                    let w = a.source_raw().word();
                    u.extend([
                        w as u16,
                        (w >> 16) as u16,
                        (w >> 32) as u16,
                        (w >> 48) as u16,
                    ]);
                }
            }
        }
        u.resize(words(&forms) * 4, 0);
        for c in u.chunks_exact(4) {
            self.words
                .push(c.iter().rev().fold(0, |w, &x| w << 16 | u64::from(x)));
        }
        self.units = u;
    }
    /// Appends an instruction with a list of whole words.
    pub(crate) fn op_list(&mut self, op: Op, args: &[Arg], list: &[Arg]) {
        if let Some((start, last, prev)) = self.last.take()
            && let Some((op, args)) = fuse((last, &prev), (op, args))
        {
            self.take_back(start);
            self.last = self.prior.take();
            return self.op_list(op, &args, list);
        }
        let at = self.here();
        self.plain(op, args);
        self.barrier();
        for a in list {
            match *a {
                Arg::L(label) => {
                    if label != 0 {
                        let unit = self.words.len() * 4;
                        self.fixups.push(Fixup {
                            at,
                            unit,
                            whole: true,
                            label,
                        });
                    }
                    self.words.push(0);
                }
                Arg::H(n) | Arg::W(n) => self.words.push(u64::from(n)),
                a => self.words.push(a.source_raw().word()),
            }
        }
    }
    /// Fills in the offsets of all labels.
    pub(crate) fn resolve(&mut self) {
        for f in &self.fixups {
            let d = self.labels[f.label as usize] as i64 - i64::from(f.at);
            if f.whole {
                self.words[f.unit / 4] = d as u64;
                continue;
            }
            let d = d as i32 as u32;
            for (i, half) in [d as u16, (d >> 16) as u16].into_iter().enumerate() {
                let (word, shift) = ((f.unit + i) / 4, (f.unit + i) % 4 * 16);
                self.words[word] = self.words[word] & !(0xFFFF << shift) | u64::from(half) << shift;
            }
        }
        self.fixups.clear();
    }
}
