//! Instructions as the compiler reads them: operands by kind, fused ops in their parts.

use purlin_isa::ops::{BASE, Form, OPS, Op, VARIANTS};
use std::sync::OnceLock;

/// An operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The number of an X register.
    X(u16),
    /// The number of a Y register.
    Y(u16),
    /// The word of a constant.
    C(u64),
    /// A place in the code, in words; none where the op has no label.
    L(Option<u32>),
    /// Whatever else.
    N(u64),
}

impl Arg {
    /// The number that it is; 0 for a term or a label.
    pub fn n(self) -> u64 {
        match self {
            Arg::N(n) | Arg::C(n) => n,
            _ => 0,
        }
    }
    /// The place that it leads to.
    pub fn label(self) -> Option<u32> {
        match self {
            Arg::L(l) => l,
            _ => None,
        }
    }
}

/// Most operands of an op.
const MOST: usize = 12;

/// An instruction, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub op: Op,
    /// The number of the variant that stands in the code.
    pub variant: u16,
    args: [Arg; MOST],
    count: u8,
    /// Where it stands, in words.
    pub at: u32,
    /// The instruction behind it.
    pub next: u32,
    /// The list: first word and words.
    pub list: (u32, u32),
}

impl Instruction {
    pub fn args(&self) -> &[Arg] {
        &self.args[..self.count as usize]
    }
    /// The same place with another op: a part of it.
    pub fn part(&self, op: Op, args: &[Arg]) -> Instruction {
        let mut i = *self;
        i.op = op;
        i.args[..args.len()].copy_from_slice(args);
        i.count = args.len() as u8;
        i
    }
}

struct Row {
    op: Op,
    forms: Vec<Form>,
    words: u32,
}

fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        (0..VARIANTS as u16)
            .filter_map(|n| {
                let op = Op::of(n)?;
                let forms = OPS[op as usize].forms((n - BASE[op as usize]) as usize);
                let words = purlin_isa::ops::words(&forms) as u32;
                Some(Row { op, forms, words })
            })
            .collect()
    })
}

fn unit(code: &[u64], i: usize) -> u64 {
    code[i / 4] >> (16 * (i % 4)) & 0xFFFF
}

/// A word of form S.
pub fn source(w: u64) -> Arg {
    match w & 7 {
        0 => Arg::X((w >> 7) as u16),
        4 => Arg::Y(((w >> 7) - 1) as u16),
        _ => Arg::C(w),
    }
}

/// The instruction at word `at`, of variant `variant` whatever number stands there. None: there is none.
pub fn decode(code: &[u64], at: u32, variant: u16) -> Option<Instruction> {
    let row = rows().get(variant as usize)?;
    if row.forms.len() > MOST {
        return None;
    }
    let mut args = [Arg::N(0); MOST];
    let mut u = at as usize * 4 + 1;
    if code.len() < (at + row.words) as usize {
        return None;
    }
    for (arg, form) in args.iter_mut().zip(&row.forms) {
        let v = (0..form.units()).fold(0, |v, k| v | unit(code, u + k) << (16 * k));
        u += form.units();
        *arg = match form {
            Form::X => Arg::X((v / 8) as u16),
            Form::Y => Arg::Y((v / 8 - 1) as u16),
            Form::D if v & 1 == 0 => Arg::X((v / 8) as u16),
            Form::D => Arg::Y((v / 8 - 1) as u16),
            Form::C => Arg::C(v),
            Form::S => source(v),
            Form::L => match v as u32 as i32 {
                0 => Arg::L(None),
                n => Arg::L(Some(at.checked_add_signed(n)?)),
            },
            Form::H | Form::W | Form::Q => Arg::N(v),
        };
    }
    let count = row.forms.len();
    let listed = match row.op.row().list {
        Some(l) => l.words(args[count - 1].n() as usize) as u32,
        None => 0,
    };
    let start = at + row.words;
    if code.len() < (start + listed) as usize {
        return None;
    }
    Some(Instruction {
        op: row.op,
        variant,
        args,
        count: count as u8,
        at,
        next: start + listed,
        list: (start, listed),
    })
}

/// Calls `each` with the parts of an instruction, in their order; with itself if it is not fused. Only the first part can need a
/// collection, fail, or leave before it has changed anything.
pub fn parts(i: &Instruction, mut each: impl FnMut(Instruction)) {
    let a = i.args();
    let mut go = |op: Op, args: &[Arg]| each(i.part(op, args));
    let x0 = Arg::X(0);
    match i.op {
        Op::Move2 => {
            go(Op::Move, &a[..2]);
            go(Op::Move, &a[2..4]);
        }
        Op::Move3 => {
            go(Op::Move, &a[..2]);
            go(Op::Move, &a[2..4]);
            go(Op::Move, &a[4..6]);
        }
        Op::MoveCall
        | Op::MoveCallLast
        | Op::MoveCallOnly
        | Op::MoveCallExt
        | Op::MoveCallExtLast
        | Op::MoveCallExtOnly => {
            go(Op::Move, &[a[0], x0]);
            let op = match i.op {
                Op::MoveCall => Op::Call,
                Op::MoveCallLast => Op::CallLast,
                Op::MoveCallOnly => Op::CallOnly,
                Op::MoveCallExt => Op::CallExt,
                Op::MoveCallExtLast => Op::CallExtLast,
                _ => Op::CallExtOnly,
            };
            go(op, &a[1..]);
        }
        Op::Move2Call | Op::Move2CallLast | Op::Move2CallOnly => {
            go(Op::Move, &a[..2]);
            go(Op::Move, &a[2..4]);
            let op = match i.op {
                Op::Move2Call => Op::Call,
                Op::Move2CallLast => Op::CallLast,
                _ => Op::CallOnly,
            };
            go(op, &a[4..]);
        }
        Op::Move3Call => {
            go(Op::Move, &a[..2]);
            go(Op::Move, &a[2..4]);
            go(Op::Move, &a[4..6]);
            go(Op::Call, &a[6..]);
        }
        Op::TrimCall => {
            go(Op::Trim, &a[..1]);
            go(Op::Call, &a[1..]);
        }
        Op::MoveReturn => {
            go(Op::Move, &[a[0], x0]);
            go(Op::Return, &[]);
        }
        Op::MoveDeallocate => {
            go(Op::Move, &[a[0], x0]);
            go(Op::Deallocate, &a[1..]);
        }
        Op::MoveDeallocateReturn => {
            go(Op::Move, &[a[0], x0]);
            go(Op::Deallocate, &a[1..]);
            go(Op::Return, &[]);
        }
        Op::DeallocateReturn => {
            go(Op::Deallocate, a);
            go(Op::Return, &[]);
        }
        Op::MoveJump => {
            go(Op::Move, &a[..2]);
            go(Op::Jump, &a[2..]);
        }
        Op::AllocateMove => {
            go(Op::Allocate, &a[..2]);
            go(Op::Move, &a[2..]);
        }
        Op::AllocateInitY => {
            go(Op::Allocate, &a[..2]);
            go(Op::InitY, &a[2..]);
        }
        Op::AllocateGetList => {
            go(Op::Allocate, &a[..2]);
            go(Op::GetList, &a[2..]);
        }
        Op::IsNonemptyGetList => {
            go(Op::IsNonemptyList, &a[..2]);
            go(Op::GetList, &a[1..]);
        }
        Op::TestHeapPutList => {
            go(Op::TestHeap, &[Arg::N(2), a[0]]);
            go(Op::PutList, &a[1..]);
        }
        Op::TestHeapPutListReturn => {
            go(Op::TestHeap, &[Arg::N(2), a[0]]);
            go(Op::PutList, &a[1..4]);
            go(Op::Deallocate, &a[4..]);
            go(Op::Return, &[]);
        }
        Op::IsLtReturn | Op::IsGeReturn => {
            let op = match i.op {
                Op::IsLtReturn => Op::IsLt,
                _ => Op::IsGe,
            };
            go(op, &a[..3]);
            go(Op::Move, &[a[3], x0]);
            go(Op::Return, &[]);
        }
        Op::IsNilReturn => {
            go(Op::IsNil, &a[..2]);
            go(Op::Move, &[a[2], x0]);
            go(Op::Return, &[]);
        }
        Op::IsEqImmedReturn => {
            go(Op::IsEqImmed, &a[..3]);
            go(Op::Move, &[a[3], x0]);
            go(Op::Return, &[]);
        }
        Op::AddReturn => {
            // A function returns one register, and nothing else lives behind it.
            go(Op::Add, &[a[0], a[1], a[2], a[3], Arg::N(0)]);
            go(Op::Deallocate, &a[4..]);
            go(Op::Return, &[]);
        }
        Op::AddCallOnly | Op::SubCallOnly => {
            let op = match i.op {
                Op::AddCallOnly => Op::Add,
                _ => Op::Sub,
            };
            go(op, &[a[0], a[1], a[2], a[3], a[5]]);
            go(Op::CallOnly, &a[4..]);
        }
        Op::BsContextPosition => {
            go(Op::BsContext, &[Arg::L(None), a[0], a[2]]);
            go(Op::BsGetPosition, &[a[0], a[1], a[2]]);
        }
        Op::BsNextByte => {
            go(Op::BsContext, &[Arg::L(None), a[1], a[3]]);
            go(Op::BsGetByte, &a[..3]);
        }
        Op::BsNextByteTable => {
            go(Op::BsContext, &[Arg::L(None), a[1], a[3]]);
            go(Op::BsGetByte, &a[..3]);
            go(Op::JumpTable, &[a[2], a[4], a[5], a[6]]);
        }
        Op::BsNextBytePosition => {
            go(Op::BsContext, &[Arg::L(None), a[1], a[4]]);
            go(Op::BsGetPosition, &[a[1], a[2], a[4]]);
            go(Op::BsGetByte, &[a[0], a[1], a[3]]);
        }
        _ => each(*i),
    }
}
