//! Tests the assembler against a disassembler: each form with all registers, sizes of
//! displacements, scales, widths and conditions.
//!
//! The last test checks the names of the forms against this file, so that none is added without a
//! check.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use purlin_jit::asm::Label;
use purlin_jit::asm::x64::*;

/// The expected operand.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Is {
    /// A general register and its size in bytes.
    R(Reg, u8),
    X(Xmm),
    /// A memory operand and its size in bytes; 0 if only its address counts.
    M(Mem, u8),
    /// A number as the instruction uses it: sign-extended to the width of the operation.
    I(i64),
    /// The target of a jump.
    To(u64),
}
use Is::{I, M, R, To, X};

const BASE: u64 = 0x4000_0000;
const REGS: [Reg; 16] = {
    let mut all = [RAX; 16];
    let mut i = 0;
    while i < 16 {
        all[i] = Reg(i as u8);
        i += 1;
    }
    all
};
const XMMS: [Xmm; 16] = {
    let mut all = [Xmm(0); 16];
    let mut i = 0;
    while i < 16 {
        all[i] = Xmm(i as u8);
        i += 1;
    }
    all
};
const CONDS: [(Cond, Mnemonic, Mnemonic); 16] = [
    (Cond::O, Mnemonic::Jo, Mnemonic::Cmovo),
    (Cond::No, Mnemonic::Jno, Mnemonic::Cmovno),
    (Cond::B, Mnemonic::Jb, Mnemonic::Cmovb),
    (Cond::Ae, Mnemonic::Jae, Mnemonic::Cmovae),
    (Cond::E, Mnemonic::Je, Mnemonic::Cmove),
    (Cond::Ne, Mnemonic::Jne, Mnemonic::Cmovne),
    (Cond::Be, Mnemonic::Jbe, Mnemonic::Cmovbe),
    (Cond::A, Mnemonic::Ja, Mnemonic::Cmova),
    (Cond::S, Mnemonic::Js, Mnemonic::Cmovs),
    (Cond::Ns, Mnemonic::Jns, Mnemonic::Cmovns),
    (Cond::P, Mnemonic::Jp, Mnemonic::Cmovp),
    (Cond::Np, Mnemonic::Jnp, Mnemonic::Cmovnp),
    (Cond::L, Mnemonic::Jl, Mnemonic::Cmovl),
    (Cond::Ge, Mnemonic::Jge, Mnemonic::Cmovge),
    (Cond::Le, Mnemonic::Jle, Mnemonic::Cmovle),
    (Cond::G, Mnemonic::Jg, Mnemonic::Cmovg),
];
const ALUS: [(Alu, Mnemonic); 6] = [
    (Alu::Add, Mnemonic::Add),
    (Alu::Or, Mnemonic::Or),
    (Alu::And, Mnemonic::And),
    (Alu::Sub, Mnemonic::Sub),
    (Alu::Xor, Mnemonic::Xor),
    (Alu::Cmp, Mnemonic::Cmp),
];
const SHIFTS: [(Shift, Mnemonic); 4] = [
    (Shift::Rol, Mnemonic::Rol),
    (Shift::Shl, Mnemonic::Shl),
    (Shift::Shr, Mnemonic::Shr),
    (Shift::Sar, Mnemonic::Sar),
];
const SSES: [(Sse, Mnemonic); 4] = [
    (Sse::Add, Mnemonic::Addsd),
    (Sse::Mul, Mnemonic::Mulsd),
    (Sse::Sub, Mnemonic::Subsd),
    (Sse::Div, Mnemonic::Divsd),
];
const WIDTHS: [(Width, u8); 2] = [(Width::D, 4), (Width::Q, 8)];
/// Numbers on both sides of the limits at which an immediate or a displacement gets longer.
const NUMBERS: [i32; 13] = [
    0,
    1,
    -1,
    2,
    8,
    126,
    127,
    128,
    -128,
    -129,
    0x1234_5678,
    i32::MAX,
    i32::MIN,
];

fn bytes_of(r: Register) -> u8 {
    r.size() as u8
}

/// Returns operand `n` of a disassembled instruction.
fn read(i: &Instruction, n: u32) -> Is {
    let reg = |r: Register| Reg(r.full_register() as u8 - Register::RAX as u8);
    let optional = |r: Register| (r != Register::None).then(|| reg(r));
    match i.op_kind(n) {
        OpKind::Register => {
            let r = i.op_register(n);
            match r.is_xmm() {
                true => X(Xmm(r as u8 - Register::XMM0 as u8)),
                false => R(reg(r), bytes_of(r)),
            }
        }
        OpKind::Memory => {
            let at = Mem {
                base: optional(i.memory_base()),
                index: optional(i.memory_index()).map(|r| (r, i.memory_index_scale() as u8)),
                disp: i.memory_displacement64() as i64 as i32,
            };
            assert!(!i.is_ip_rel_memory_operand());
            M(at, i.memory_size().size() as u8)
        }
        OpKind::NearBranch64 => To(i.near_branch64()),
        OpKind::Immediate8 => I(i64::from(i.immediate8())),
        OpKind::Immediate8to32 => I(i64::from(i.immediate8to32())),
        OpKind::Immediate8to64 => I(i.immediate8to64()),
        OpKind::Immediate32 => I(i64::from(i.immediate32() as i32)),
        OpKind::Immediate32to64 => I(i.immediate32to64()),
        OpKind::Immediate64 => I(i.immediate64() as i64),
        other => panic!("an operand of kind {other:?}"),
    }
}

fn bytes(make: impl FnOnce(&mut Asm)) -> Vec<u8> {
    let mut a = Asm::new();
    make(&mut a);
    a.finish()
        .expect("all labels stand somewhere")
        .place(BASE)
        .expect("all is near")
}

fn decoded(code: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, code, BASE, DecoderOptions::NONE)
        .into_iter()
        .collect()
}

/// Checks that the form makes this one instruction, and nothing after it.
fn check(make: impl FnOnce(&mut Asm), mnemonic: Mnemonic, operands: &[Is]) {
    let code = bytes(make);
    let all = decoded(&code);
    assert_eq!(all.len(), 1, "{code:02x?} for {mnemonic:?} {operands:?}");
    let i = all[0];
    assert_eq!(i.mnemonic(), mnemonic, "{code:02x?} for {operands:?}");
    let found: Vec<Is> = (0..i.op_count()).map(|n| read(&i, n)).collect();
    assert_eq!(found, operands, "{code:02x?} for {mnemonic:?}");
}

/// Returns memory operands of every kind: each base, each index with each scale, each size of
/// displacement.
fn places() -> Vec<Mem> {
    let mut all = Vec::new();
    for disp in NUMBERS {
        if disp >= 0 {
            all.push(absolute(disp));
        }
        for base in REGS {
            all.push(at(base, disp));
        }
    }
    for disp in [0, 8, -128, 128, i32::MIN] {
        for base in REGS {
            for index in REGS.into_iter().filter(|&r| r != RSP) {
                for scale in [1, 2, 4, 8] {
                    all.push(indexed(base, index, scale, disp));
                }
            }
        }
    }
    all
}
/// Returns some of each kind, for forms whose operands were checked with all registers already.
fn few_places() -> Vec<Mem> {
    let mut all = vec![absolute(0x7000_0000)];
    for base in REGS {
        all.push(at(base, 0));
        all.push(at(base, -8));
        all.push(at(base, 0x1000));
        all.push(indexed(base, R12, 8, -2));
        all.push(indexed(base, RBP, 1, 0));
    }
    all
}

#[test]
fn moves() {
    for d in REGS {
        for s in REGS {
            match d == s {
                true => assert!(bytes(|a| a.mov(d, s)).is_empty()),
                false => check(|a| a.mov(d, s), Mnemonic::Mov, &[R(d, 8), R(s, 8)]),
            }
            check(|a| a.mov32(d, s), Mnemonic::Mov, &[R(d, 4), R(s, 4)]);
            // Both orders are the same instruction.
            check(|a| a.xchg(d, s), Mnemonic::Xchg, &[R(s, 8), R(d, 8)]);
            for (c, _, m) in CONDS {
                check(|a| a.cmov(c, d, s), m, &[R(d, 8), R(s, 8)]);
            }
        }
    }
}

#[test]
fn numbers_into_registers() {
    let values = [
        0,
        1,
        0x7F,
        0x80,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFF,
        0x1_0000_0000,
        0x7FFF_FFFF_FFFF_FFFF,
        0xFFFF_FFFF_8000_0000,
        0xFFFF_FFFF_7FFF_FFFF,
        u64::MAX,
        0x8000_0000_0000_0000,
    ];
    for d in REGS {
        for v in values {
            // Writing a register of four bytes clears the upper ones: the value is that of the
            // whole register.
            let code = bytes(|a| a.mov_i(d, v));
            let all = decoded(&code);
            assert_eq!(all.len(), 1);
            assert_eq!(all[0].mnemonic(), Mnemonic::Mov);
            let got = match (read(&all[0], 0), read(&all[0], 1)) {
                (R(r, 4), I(n)) if r == d => u64::from(n as u32),
                (R(r, 8), I(n)) if r == d => n as u64,
                other => panic!("{other:?} for {d:?} = {v:#x}"),
            };
            assert_eq!(got, v, "{code:02x?}");
        }
    }
}

#[test]
fn memory() {
    for m in places() {
        check(|a| a.load(R9, m), Mnemonic::Mov, &[R(R9, 8), M(m, 8)]);
        check(|a| a.store(m, RSI), Mnemonic::Mov, &[M(m, 8), R(RSI, 8)]);
        check(|a| a.lea(RDX, m), Mnemonic::Lea, &[R(RDX, 8), M(m, 0)]);
    }
    for m in few_places() {
        for r in REGS {
            check(|a| a.load(r, m), Mnemonic::Mov, &[R(r, 8), M(m, 8)]);
            check(|a| a.load32(r, m), Mnemonic::Mov, &[R(r, 4), M(m, 4)]);
            check(|a| a.load16(r, m), Mnemonic::Movzx, &[R(r, 4), M(m, 2)]);
            check(|a| a.load8(r, m), Mnemonic::Movzx, &[R(r, 4), M(m, 1)]);
            check(|a| a.store(m, r), Mnemonic::Mov, &[M(m, 8), R(r, 8)]);
            check(|a| a.store8(m, r), Mnemonic::Mov, &[M(m, 1), R(r, 1)]);
            check(|a| a.lea(r, m), Mnemonic::Lea, &[R(r, 8), M(m, 0)]);
        }
        for v in NUMBERS {
            check(
                |a| a.store_i(m, v),
                Mnemonic::Mov,
                &[M(m, 8), I(i64::from(v))],
            );
        }
        for v in [0, 1, 0x7F, 0x80, 0xFF] {
            check(
                |a| a.store8_i(m, v),
                Mnemonic::Mov,
                &[M(m, 1), I(i64::from(v))],
            );
            check(
                |a| a.cmp8_mi(m, v),
                Mnemonic::Cmp,
                &[M(m, 1), I(i64::from(v))],
            );
        }
        check(|a| a.push_m(m), Mnemonic::Push, &[M(m, 8)]);
        check(|a| a.pop_m(m), Mnemonic::Pop, &[M(m, 8)]);
        check(|a| a.jmp_m(m), Mnemonic::Jmp, &[M(m, 8)]);
        check(|a| a.call_m(m), Mnemonic::Call, &[M(m, 8)]);
    }
}

#[test]
fn arithmetic() {
    for (w, n) in WIDTHS {
        for (op, m) in ALUS {
            for d in REGS {
                for s in REGS {
                    check(|a| a.alu(w, op, d, s), m, &[R(d, n), R(s, n)]);
                }
                for v in NUMBERS {
                    check(|a| a.alu_i(w, op, d, v), m, &[R(d, n), I(i64::from(v))]);
                }
                for at in few_places() {
                    check(|a| a.alu_m(w, op, d, at), m, &[R(d, n), M(at, n)]);
                    check(|a| a.alu_mr(w, op, at, d), m, &[M(at, n), R(d, n)]);
                }
            }
            for at in few_places() {
                for v in NUMBERS {
                    check(|a| a.alu_mi(w, op, at, v), m, &[M(at, n), I(i64::from(v))]);
                }
            }
        }
        for d in REGS {
            for s in REGS {
                check(|a| a.test(w, d, s), Mnemonic::Test, &[R(d, n), R(s, n)]);
            }
            for (op, m) in SHIFTS {
                for by in [0, 1, 4, 31, 63] {
                    check(|a| a.shift_i(w, op, d, by), m, &[R(d, n), I(i64::from(by))]);
                }
                check(|a| a.shift_cl(w, op, d), m, &[R(d, n), R(RCX, 1)]);
            }
            check(|a| a.bswap(w, d), Mnemonic::Bswap, &[R(d, n)]);
        }
    }
    for d in REGS {
        for s in REGS {
            check(|a| a.imul(d, s), Mnemonic::Imul, &[R(d, 8), R(s, 8)]);
            check(|a| a.popcnt(d, s), Mnemonic::Popcnt, &[R(d, 8), R(s, 8)]);
            for (w, n) in WIDTHS {
                check(|a| a.bt(w, d, s), Mnemonic::Bt, &[R(d, n), R(s, n)]);
            }
            for n in REGS {
                check(
                    |a| a.bzhi(d, s, n),
                    Mnemonic::Bzhi,
                    &[R(d, 8), R(s, 8), R(n, 8)],
                );
            }
            for v in NUMBERS {
                let n = I(i64::from(v));
                check(
                    |a| a.imul_i(d, s, v),
                    Mnemonic::Imul,
                    &[R(d, 8), R(s, 8), n],
                );
            }
        }
        for v in [0, 1, 15, 0x7F, 0x80, 0xFF] {
            check(
                |a| a.test8_i(d, v),
                Mnemonic::Test,
                &[R(d, 1), I(i64::from(v))],
            );
        }
        for v in NUMBERS {
            let n = I(i64::from(v));
            check(|a| a.test32_i(d, v as u32), Mnemonic::Test, &[R(d, 4), n]);
        }
        check(|a| a.idiv(d), Mnemonic::Idiv, &[R(d, 8)]);
        check(|a| a.neg(d), Mnemonic::Neg, &[R(d, 8)]);
        check(|a| a.invert(d), Mnemonic::Not, &[R(d, 8)]);
        check(|a| a.inc(d), Mnemonic::Inc, &[R(d, 8)]);
        check(|a| a.dec(d), Mnemonic::Dec, &[R(d, 8)]);
    }
    check(|a| a.cqo(), Mnemonic::Cqo, &[]);
}

#[test]
fn doubles() {
    for d in XMMS {
        for s in XMMS {
            for (op, m) in SSES {
                check(|a| a.sse_op(op, d, s), m, &[X(d), X(s)]);
            }
            check(|a| a.ucomisd(d, s), Mnemonic::Ucomisd, &[X(d), X(s)]);
            check(|a| a.xorpd(d, s), Mnemonic::Xorpd, &[X(d), X(s)]);
            check(|a| a.movapd(d, s), Mnemonic::Movapd, &[X(d), X(s)]);
        }
        for r in REGS {
            check(|a| a.cvtsi2sd(d, r), Mnemonic::Cvtsi2sd, &[X(d), R(r, 8)]);
            check(|a| a.movq_from(r, d), Mnemonic::Movq, &[R(r, 8), X(d)]);
            check(|a| a.movq_to(d, r), Mnemonic::Movq, &[X(d), R(r, 8)]);
        }
        for m in few_places() {
            check(|a| a.movsd_load(d, m), Mnemonic::Movsd, &[X(d), M(m, 8)]);
            check(|a| a.movsd_store(m, d), Mnemonic::Movsd, &[M(m, 8), X(d)]);
            for (op, name) in SSES {
                check(|a| a.sse_op_m(op, d, m), name, &[X(d), M(m, 8)]);
            }
        }
    }
}

#[test]
fn jumps() {
    for r in REGS {
        check(|a| a.jmp_r(r), Mnemonic::Jmp, &[R(r, 8)]);
        check(|a| a.call_r(r), Mnemonic::Call, &[R(r, 8)]);
        check(|a| a.push(r), Mnemonic::Push, &[R(r, 8)]);
        check(|a| a.pop(r), Mnemonic::Pop, &[R(r, 8)]);
    }
    check(|a| a.ret(), Mnemonic::Ret, &[]);
    check(|a| a.ud2(), Mnemonic::Ud2, &[]);
    // Out of the code, to the limits of the distance.
    for to in [
        0x1000,
        BASE,
        BASE + 5,
        BASE + 0x7FFF_FFFF,
        BASE - 0x3FFF_FFFF,
    ] {
        check(|a| a.call_abs(to), Mnemonic::Call, &[To(to)]);
        check(|a| a.jmp_abs(to), Mnemonic::Jmp, &[To(to)]);
        for (c, m, _) in CONDS {
            check(|a| a.jcc_abs(c, to), m, &[To(to)]);
        }
    }
    let mut a = Asm::new();
    a.jmp_abs(BASE + 0x1_0000_0000);
    assert!(a.finish().expect("no labels").place(BASE).is_none());
    // To labels: forward, backward, on both sides of the limit of the short form.
    type Jump = fn(&mut Asm, Cond, Label);
    let forms: [(Jump, Option<Mnemonic>); 4] = [
        (|a, _, l| a.jmp(l), Some(Mnemonic::Jmp)),
        (|a, _, l| a.call(l), Some(Mnemonic::Call)),
        (|a, c, l| a.jcc(c, l), None),
        (|a, c, l| a.jcc_near(c, l), None),
    ];
    for (jump, name) in forms {
        for (c, of_c, _) in CONDS {
            for far in [
                0, 1, 100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 1000,
            ] {
                let (mut from, mut to) = (0, 0);
                let back = bytes(|a| {
                    let l = a.label();
                    to = a.here();
                    a.bind(l);
                    (0..far).for_each(|_| a.ret());
                    from = a.here();
                    jump(a, c, l);
                });
                jumps_from_to(&back, from, to, name.unwrap_or(of_c));
                let there = bytes(|a| {
                    let l = a.label();
                    from = a.here();
                    jump(a, c, l);
                    (0..far).for_each(|_| a.ret());
                    a.bind(l);
                    to = a.here();
                    a.ret();
                });
                jumps_from_to(&there, from, to, name.unwrap_or(of_c));
            }
        }
    }
    for (c, _, _) in CONDS {
        assert_eq!(c.negated().negated(), c);
        assert_eq!(c as u8 ^ 1, c.negated() as u8);
    }
    // Code with an unplaced label can't be finished.
    let mut a = Asm::new();
    let l = a.label();
    a.jmp(l);
    assert!(a.finish().is_none());
}

fn jumps_from_to(code: &[u8], from: u32, to: u32, name: Mnemonic) {
    let i = decoded(&code[from as usize..])[0];
    assert_eq!(i.mnemonic(), name);
    // Decoded as if its bytes began at the base.
    assert_eq!(
        i.near_branch64().wrapping_sub(BASE) as i64,
        i64::from(to) - i64::from(from)
    );
}

#[test]
fn labels_and_data() {
    for r in REGS {
        for n in [0, 3, 200] {
            let mut to = 0;
            let code = bytes(|a| {
                let l = a.label();
                a.lea_label(r, l);
                (0..n).for_each(|_| a.ret());
                a.bind(l);
                to = a.here();
                a.ret();
            });
            let i = decoded(&code)[0];
            assert_eq!(i.mnemonic(), Mnemonic::Lea);
            assert_eq!(read(&i, 0), R(r, 8));
            assert!(i.is_ip_rel_memory_operand());
            assert_eq!(i.ip_rel_memory_address(), BASE + u64::from(to));
        }
    }
    // Addresses and distances as data.
    let code = bytes(|a| {
        let (first, last) = (a.here_label(), a.label());
        a.address_of(last);
        a.ret();
        a.bind(last);
        a.distance(first, last).expect("both stand somewhere");
        let same = a.label_at(8);
        assert_eq!(a.offset(same), Some(8));
        let nowhere = a.label();
        assert!(a.distance(first, nowhere).is_none());
        a.address_of(same);
    });
    assert_eq!(code[..8], (BASE + 9).to_le_bytes());
    assert_eq!(code[9..13], 9u32.to_le_bytes());
    assert_eq!(code[13..], (BASE + 8).to_le_bytes());
    for n in [2, 4, 8, 16, 32, 64] {
        for before in 0..n {
            let mut end = 0;
            let code = bytes(|a| {
                (0..before).for_each(|_| a.ret());
                a.align(n);
                end = a.here();
            });
            assert_eq!(end % n, 0);
            assert!(end < before + n);
            for i in decoded(&code[before as usize..]) {
                assert_eq!(i.mnemonic(), Mnemonic::Nop);
            }
        }
    }
}

/// Each public method of the assembler is called in this file.
#[test]
fn every_form_is_here() {
    let asm = include_str!("../src/asm/x64.rs");
    let here = include_str!("asm_x64.rs");
    let methods = asm.split("impl Asm").skip(1).collect::<String>();
    let missing: Vec<&str> = methods
        .split("pub fn ")
        .skip(1)
        .map(|m| m.split(['(', '<']).next().unwrap_or_default())
        .filter(|m| !here.contains(&format!("a.{m}(")) && !["new", "with_capacity"].contains(m))
        .collect();
    assert!(missing.is_empty(), "forms without a check: {missing:?}");
}
