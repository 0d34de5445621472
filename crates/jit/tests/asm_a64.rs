//! Tests the assembler for aarch64 against a disassembler: each form with all registers, widths,
//! conditions and shifts, and numbers on both sides of its limits.
//!
//! The last test checks the names of the forms against this file, so that none is added without a
//! check.

use purlin_jit::asm::a64::Width::{W, X};
use purlin_jit::asm::a64::*;
use purlin_jit::asm::{Code, Label};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

const BASE: u64 = 0x4000_0000;
const CONDS: [(Cond, &str); 14] = [
    (Cond::Eq, "eq"),
    (Cond::Ne, "ne"),
    (Cond::Hs, "hs"),
    (Cond::Lo, "lo"),
    (Cond::Mi, "mi"),
    (Cond::Pl, "pl"),
    (Cond::Vs, "vs"),
    (Cond::Vc, "vc"),
    (Cond::Hi, "hi"),
    (Cond::Ls, "ls"),
    (Cond::Ge, "ge"),
    (Cond::Lt, "lt"),
    (Cond::Gt, "gt"),
    (Cond::Le, "le"),
];

fn regs() -> impl Iterator<Item = Reg> + Clone {
    (0..31).map(Reg)
}
/// Sets of three registers in which each register is at each place.
fn threes() -> impl Iterator<Item = (Reg, Reg, Reg)> {
    (0..31).map(|n| (Reg(n), Reg((n + 7) % 31), Reg((n + 18) % 31)))
}
fn twos() -> impl Iterator<Item = (Reg, Reg)> {
    (0..31).map(|n| (Reg(n), Reg((n + 7) % 31)))
}
/// The name of a register; number 31 is zero.
fn r(w: Width, r: Reg) -> String {
    let letter = if w == X { 'x' } else { 'w' };
    match r.0 {
        31 => format!("{letter}zr"),
        n => format!("{letter}{n}"),
    }
}
/// The name of a register of 64 bits; number 31 is the stack pointer.
fn s(n: Reg) -> String {
    match n.0 {
        31 => "sp".into(),
        n => format!("x{n}"),
    }
}
fn finished(make: impl FnOnce(&mut Asm)) -> Code {
    let mut a = Asm::new();
    make(&mut a);
    a.finish().expect("all labels stand within reach")
}
fn bytes(make: impl FnOnce(&mut Asm)) -> Vec<u8> {
    finished(make).place(BASE).expect("all is near")
}
/// Returns text with numbers in decimal, and without marks of numbers.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        out.push_str(&rest[..at]);
        let digits = &rest[at + 2..];
        let end = digits
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(digits.len());
        let n = u64::from_str_radix(&digits[..end], 16).expect("a number");
        out.push_str(&n.to_string());
        rest = &digits[end..];
    }
    out.push_str(rest);
    out.replace(['#', '$'], "").replace("+", "")
}
/// Returns the instructions as text. Distances are in bytes from the instruction.
fn texts(code: &[u8]) -> Vec<String> {
    let d = InstDecoder::default();
    code.chunks(4)
        .map(|word| {
            let i = d
                .decode(&mut U8Reader::new(word))
                .unwrap_or_else(|e| panic!("{word:02x?}: {e:?}"));
            plain(&i.to_string())
        })
        .collect()
}
/// Checks that the form makes this one instruction.
#[track_caller]
fn check(make: impl FnOnce(&mut Asm), text: impl AsRef<str>) {
    let code = bytes(make);
    assert_eq!(texts(&code), [text.as_ref()], "{code:02x?}");
}
/// Checks that the form makes one of these texts, which mean the same.
#[track_caller]
fn check_any(make: impl FnOnce(&mut Asm), texts_of: &[String]) {
    let code = bytes(make);
    let found = texts(&code);
    assert_eq!(found.len(), 1, "{code:02x?}");
    assert!(
        texts_of.contains(&found[0]),
        "{found:?} is none of {texts_of:?}"
    );
}

const WIDTHS: [Width; 2] = [W, X];

#[test]
fn moves() {
    for (d, n) in twos() {
        check(|a| a.mov(d, n), format!("mov {}, {}", r(X, d), r(X, n)));
        check(|a| a.mov32(d, n), format!("mov {}, {}", r(W, d), r(W, n)));
        check(|a| a.mov_sp(d, SP), format!("mov {}, sp", s(d)));
        check(|a| a.mov_sp(SP, n), format!("mov sp, {}", s(n)));
        for (part, by) in [(0, 0), (1, 16), (2, 32), (3, 48)] {
            let text = |name: &str, w: Width| match by {
                0 => format!("{name} {}, 48879", r(w, d)),
                _ => format!("{name} {}, 48879, lsl {by}", r(w, d)),
            };
            let shown = |w: Width| {
                let n = 48879u64 << by;
                format!("mov {}, {n}", r(w, d))
            };
            let inverse = |w: Width| {
                let n = !(48879u64 << by);
                let n = if w == W { n & 0xFFFF_FFFF } else { n };
                format!("mov {}, {n}", r(w, d))
            };
            let inverse_signed = |w: Width| {
                let n = !(48879u64 << by) as i64;
                format!("mov {}, {n}", r(w, d))
            };
            for w in WIDTHS.into_iter().filter(|&w| w == X || part < 2) {
                check_any(|a| a.movz(w, d, 48879, part), &[text("movz", w), shown(w)]);
                check_any(
                    |a| a.movn(w, d, 48879, part),
                    &[text("movn", w), inverse(w), inverse_signed(w)],
                );
                check(|a| a.movk(w, d, 48879, part), text("movk", w));
            }
        }
    }
    check(|a| a.mov(Reg(3), ZR), "mov x3, xzr");
    assert!(bytes(|a| a.mov(Reg(3), Reg(3))).is_empty());
}

/// Runs instructions that make a number, as the manual says they do.
fn run(code: &[u8]) -> u64 {
    let mut x = 0u64;
    for c in code.chunks(4) {
        let w = u32::from_le_bytes(c.try_into().expect("a word"));
        let (imm, shift) = (u64::from(w >> 5 & 0xFFFF), 16 * (w >> 21 & 3));
        let wide = w >> 31 == 1;
        let cut = |x: u64| if wide { x } else { x & 0xFFFF_FFFF };
        x = match (w >> 23 & 0x3F, w >> 29 & 3) {
            (0x25, 0) => cut(!(imm << shift)),
            (0x25, 2) => imm << shift,
            (0x25, 3) => x & !(0xFFFF << shift) | imm << shift,
            (0x24, 1) => pattern(w >> 10 & 0x1FFF),
            _ => panic!("{w:#x}"),
        };
    }
    x
}
/// The number of an immediate of 64 bits, as the manual decodes it.
fn pattern(field: u32) -> u64 {
    let (n, immr, imms) = (field >> 12, field >> 6 & 63, field & 63);
    let all = n << 6 | (!imms & 63);
    let length = 31 - all.leading_zeros();
    let size = 1u32 << length;
    let (turn, ones) = (immr & (size - 1), (imms & (size - 1)) + 1);
    let one = u64::MAX >> (64 - ones);
    let mask = u64::MAX >> (64 - size);
    let turned = match turn {
        0 => one,
        t => (one >> t | one << (size - t)) & mask,
    };
    (0..64 / size).fold(0, |x, k| x | turned << (k * size))
}

#[test]
fn numbers() {
    let mut all = vec![
        0,
        1,
        15,
        0xFFFF,
        0x1_0000,
        0xFFFF_FFFF,
        0x5555_5555_5555_5555,
    ];
    for k in 0..64 {
        for n in [
            1u64,
            3,
            0xFFFF,
            0x1234,
            0xDEAD_BEEF,
            u64::MAX,
            0x1234_5678_9ABC_DEF0,
        ] {
            all.extend([n << k, !(n << k), n >> k, (n << k) & 0xFFFF_FFFF]);
        }
    }
    for n in all {
        let code = bytes(|a| a.mov_i(Reg(0), n));
        assert!((4..=16).contains(&code.len()), "{n:#x}");
        assert_eq!(run(&code), n, "{n:#x}: {:?}", texts(&code));
        if n < 1 << 16 {
            assert_eq!(code.len(), 4, "{n:#x}");
        }
    }
    // Each pattern has an encoding that means it, and nothing else has one.
    let mut patterns = std::collections::HashSet::new();
    for size in [2u32, 4, 8, 16, 32, 64] {
        for ones in 1..size {
            for turn in 0..size {
                let mask = u64::MAX >> (64 - size);
                let one = (1u64 << ones) - 1;
                let turned = match turn {
                    0 => one,
                    t => (one >> t | one << (size - t)) & mask,
                };
                let n = (0..64 / size).fold(0, |x, k| x | turned << (k * size));
                patterns.insert(n);
                let field = logic_fits(X, n).expect("a pattern");
                assert_eq!(pattern(field), n);
                let narrow = logic_fits(W, n & 0xFFFF_FFFF);
                // The lower half of a pattern of 64 bits may be one of its own.
                if size < 64 {
                    let field = narrow.expect("a pattern of 32 bits");
                    assert!(pattern(field) == n && field >> 12 == 0, "{n:#x}");
                }
            }
        }
    }
    assert_eq!(patterns.len(), 5334);
    for n in (0..100_000u64).chain([u64::MAX, 0x1_0000_0000_0001, 0xFF00_FF01]) {
        assert_eq!(logic_fits(X, n).is_some(), patterns.contains(&n), "{n:#x}");
    }
    assert_eq!(logic_fits(W, 1 << 32), None);
    for (n, fits) in [
        (0, true),
        (0xFFF, true),
        (0x1000, true),
        (0x1001, false),
        (0xFF_F000, true),
        (0x100_0000, false),
        (u64::MAX, false),
    ] {
        assert_eq!(sum_fits(n), fits, "{n:#x}");
    }
}

#[test]
fn memory() {
    let sizes = [
        (Size::B, "b", W, 1),
        (Size::H, "h", W, 2),
        (Size::W, "", W, 4),
        (Size::X, "", X, 8),
    ];
    for (t, n, m) in threes() {
        for base in [n, SP] {
            for (size, letter, w, bytes_of) in sizes {
                for disp in [0, bytes_of, 4095 * bytes_of, 1, 255, -1, -256] {
                    assert!(Asm::displacement_fits(size, disp));
                    let scaled = disp >= 0 && disp % bytes_of == 0;
                    let (u, at) = match (scaled, disp) {
                        (true, 0) => ("", String::new()),
                        (true, d) => ("", format!(", {d}")),
                        (false, d) => ("u", format!(", {d}")),
                    };
                    let names = match u {
                        "" => ["ldr", "str"],
                        _ => ["ldur", "stur"],
                    };
                    let text =
                        |k: usize| format!("{}{letter} {}, [{}{at}]", names[k], r(w, t), s(base));
                    check(|a| a.load(size, t, base, disp), text(0));
                    check(|a| a.store(size, t, base, disp), text(1));
                }
                for disp in [4096 * bytes_of, -257, 4095 * bytes_of + 1] {
                    assert_eq!(
                        Asm::displacement_fits(size, disp),
                        size == Size::B && disp < 0 && disp > -257
                    );
                }
                for scaled in [false, true] {
                    let by = match (scaled, size) {
                        (false, _) | (_, Size::B) => String::new(),
                        (true, size) => format!(", lsl {}", size as u32),
                    };
                    let text = |name: &str| {
                        format!("{name}{letter} {}, [{}, {}{by}]", r(w, t), s(base), r(X, m))
                    };
                    check(|a| a.load_r(size, t, base, m, scaled), text("ldr"));
                    check(|a| a.store_r(size, t, base, m, scaled), text("str"));
                }
            }
            check(
                |a| a.load_signed32(t, base, 8),
                format!("ldrsw {}, [{}, 8]", r(X, t), s(base)),
            );
            check(
                |a| a.load_signed32(t, base, -2),
                format!("ldursw {}, [{}, -2]", r(X, t), s(base)),
            );
            let text = format!("ldrsw {}, [{}, {}, lsl 2]", r(X, t), s(base), r(X, m));
            check(|a| a.load_signed32_r(t, base, m, true), text);
            let text = format!("ldrsw {}, [{}, {}]", r(X, t), s(base), r(X, m));
            check(|a| a.load_signed32_r(t, base, m, false), text);
            for disp in [16, -16, 255, -256] {
                let post = format!("{}, [{}], {disp}", r(X, t), s(base));
                let pre = format!("{}, [{}, {disp}]!", r(X, t), s(base));
                check(
                    |a| a.load_indexed(t, base, disp, Index::Post),
                    format!("ldr {post}"),
                );
                check(
                    |a| a.load_indexed(t, base, disp, Index::Pre),
                    format!("ldr {pre}"),
                );
                check(
                    |a| a.store_indexed(t, base, disp, Index::Post),
                    format!("str {post}"),
                );
                check(
                    |a| a.store_indexed(t, base, disp, Index::Pre),
                    format!("str {pre}"),
                );
            }
            for disp in [0, 8, -512, 504] {
                assert!(Asm::pair_fits(disp));
                let (x, d) = (Vec64(t.0), Vec64(m.0));
                let offset = match disp {
                    0 => format!("[{}]", s(base)),
                    _ => format!("[{}, {disp}]", s(base)),
                };
                let places = [
                    (Index::Offset, offset),
                    (Index::Post, format!("[{}], {disp}", s(base))),
                    (Index::Pre, format!("[{}, {disp}]!", s(base))),
                ];
                for (index, place) in places {
                    let pair = format!("{}, {}, {place}", r(X, t), r(X, m));
                    check(
                        |a| a.load_pair(t, m, base, disp, index),
                        format!("ldp {pair}"),
                    );
                    check(
                        |a| a.store_pair(t, m, base, disp, index),
                        format!("stp {pair}"),
                    );
                    let pair = format!("d{}, d{}, {place}", x.0, d.0);
                    check(
                        |a| a.load_pair_d(x, d, base, disp, index),
                        format!("ldp {pair}"),
                    );
                    check(
                        |a| a.store_pair_d(x, d, base, disp, index),
                        format!("stp {pair}"),
                    );
                }
            }
            check(
                |a| a.load_acquire(t, base),
                format!("ldar {}, [{}]", r(X, t), s(base)),
            );
            check(
                |a| a.store_release(t, base),
                format!("stlr {}, [{}]", r(X, t), s(base)),
            );
            check(
                |a| a.prefetch(base, 0),
                format!("prfm pldl1keep, [{}]", s(base)),
            );
            check(
                |a| a.prefetch(base, 64),
                format!("prfm pldl1keep, [{}, 64]", s(base)),
            );
            for (disp, at, name) in [(0, "", "r"), (32760, ", 32760", "r"), (-8, ", -8", "ur")] {
                let text = format!("{name} d{}, [{}{at}]", t.0, s(base));
                check(|a| a.load_d(Vec64(t.0), base, disp), format!("ld{text}"));
                check(|a| a.store_d(Vec64(t.0), base, disp), format!("st{text}"));
            }
        }
    }
    for disp in [4, 512, -520] {
        assert!(!Asm::pair_fits(disp));
    }
}

#[test]
fn sums() {
    let all = [
        (Sum::Add, "add"),
        (Sum::Adds, "adds"),
        (Sum::Sub, "sub"),
        (Sum::Subs, "subs"),
    ];
    for (d, n, m) in threes() {
        for (op, name) in all {
            for w in WIDTHS {
                let three = format!("{name} {}, {}, {}", r(w, d), r(w, n), r(w, m));
                check(|a| a.sum(w, op, d, n, m), &three);
                for (shift, by) in [
                    (Shift::Lsl, "lsl"),
                    (Shift::Lsr, "lsr"),
                    (Shift::Asr, "asr"),
                ] {
                    for k in [1, 31] {
                        let text = format!("{three}, {by} {k}");
                        check(|a| a.sum_shifted(w, op, d, n, m, (shift, k)), text);
                    }
                }
                for value in [0u64, 1, 0xFFF, 0x1000, 0xFF_F000] {
                    let number = match value {
                        0..0x1000 => format!("{value}"),
                        v => format!("{}, lsl 12", v >> 12),
                    };
                    let whole = format!("{value}");
                    let start = format!("{name} {}, {}, ", r(w, d), r(w, n));
                    let texts = [format!("{start}{number}"), format!("{start}{whole}")];
                    check_any(|a| a.sum_i(w, op, d, n, value), &texts);
                    let ends = [number, whole].map(|v| format!("{}, {v}", r(w, n)));
                    let compared = |name: &str| ends.clone().map(|e| format!("{name} {e}"));
                    check_any(|a| a.cmp_i(w, n, value), &compared("cmp"));
                    check_any(|a| a.cmn_i(w, n, value), &compared("cmn"));
                }
            }
        }
        for (op, name) in [(Sum::Add, "add"), (Sum::Sub, "sub")] {
            for by in [0, 3] {
                let shown = |e: &str, w: Width| match by {
                    0 => format!("{name} sp, sp, {}, {e}", r(w, m)),
                    k => format!("{name} sp, sp, {}, {e} {k}", r(w, m)),
                };
                // The disassembler shows the extension by the name of the register alone.
                let short = match by {
                    0 => format!("{name} sp, sp, {}", r(W, m)),
                    k => format!("{name} sp, sp, {}, lsl {k}", r(W, m)),
                };
                check_any(
                    |a| a.sum_extended(op, SP, SP, m, true, by),
                    &[shown("uxtw", W), short],
                );
                let plain = match by {
                    0 => format!("{name} sp, sp, {}", r(X, m)),
                    k => format!("{name} sp, sp, {}, lsl {k}", r(X, m)),
                };
                check_any(
                    |a| a.sum_extended(op, SP, SP, m, false, by),
                    &[plain, shown("uxtx", X)],
                );
                let short = format!("{name} {}, {}, {}", s(d), s(n), r(W, m));
                let texts = match by {
                    0 => [short.clone(), format!("{short}, uxtw")],
                    _ => [format!("{short}, uxtw {by}"), format!("{short}, lsl {by}")],
                };
                check_any(|a| a.sum_extended(op, d, n, m, true, by), &texts);
            }
        }
        for w in WIDTHS {
            check(|a| a.cmp(w, n, m), format!("cmp {}, {}", r(w, n), r(w, m)));
            check(|a| a.neg(w, d, m), format!("neg {}, {}", r(w, d), r(w, m)));
            for (c, cond) in CONDS {
                let text = format!("ccmp {}, {}, 5, {cond}", r(w, n), r(w, m));
                check(|a| a.ccmp(w, n, m, 5, c), text);
                let text = format!("ccmp {}, 31, 0, {cond}", r(w, n));
                check(|a| a.ccmp_i(w, n, 31, 0, c), text);
            }
            let three = format!("{}, {}, {}", r(w, d), r(w, n), r(w, m));
            check(|a| a.udiv(w, d, n, m), format!("udiv {three}"));
            check(|a| a.sdiv(w, d, n, m), format!("sdiv {three}"));
            check(|a| a.mul(w, d, n, m), format!("mul {three}"));
            let four = format!("{three}, {}", r(w, Reg(9)));
            check(|a| a.madd(w, d, n, m, Reg(9)), format!("madd {four}"));
            check(|a| a.msub(w, d, n, m, Reg(9)), format!("msub {four}"));
        }
        let three = format!("{}, {}, {}", r(X, d), r(X, n), r(X, m));
        check(|a| a.smulh(d, n, m), format!("smulh {three}"));
    }
}

#[test]
fn bits() {
    let all = [
        (Logic::And, "and"),
        (Logic::Bic, "bic"),
        (Logic::Orr, "orr"),
        (Logic::Orn, "orn"),
        (Logic::Eor, "eor"),
        (Logic::Eon, "eon"),
        (Logic::Ands, "ands"),
        (Logic::Bics, "bics"),
    ];
    let shifts = [
        (Shift::Lsl, "lsl"),
        (Shift::Lsr, "lsr"),
        (Shift::Asr, "asr"),
        (Shift::Ror, "ror"),
    ];
    for (d, n, m) in threes() {
        for w in WIDTHS {
            let (dw, nw, mw) = (r(w, d), r(w, n), r(w, m));
            for (op, name) in all {
                let three = format!("{name} {dw}, {nw}, {mw}");
                check(|a| a.logic(w, op, d, n, m), &three);
                for (shift, by) in shifts {
                    let text = format!("{three}, {by} 31");
                    check(|a| a.logic_shifted(w, op, d, n, m, (shift, 31)), text);
                }
            }
            for (op, name) in [
                (Logic::And, "and"),
                (Logic::Orr, "orr"),
                (Logic::Eor, "eor"),
                (Logic::Ands, "ands"),
            ] {
                for v in [
                    1u64,
                    15,
                    0xFFF0,
                    if w == X { 1 << 63 | 1 } else { 0x8000_0001 },
                ] {
                    let text = format!("{name} {dw}, {nw}, {v}");
                    check(|a| a.logic_i(w, op, d, n, v), text);
                }
            }
            check(|a| a.test_i(w, n, 15), format!("tst {nw}, 15"));
            let bits = if w == X { 64 } else { 32 };
            for (shift, name) in shifts {
                for by in [1, bits / 2, bits - 1] {
                    let text = format!("{name} {dw}, {nw}, {by}");
                    check(|a| a.shift_i(w, shift, d, n, by), text);
                }
                let text = format!("{name} {dw}, {nw}, {mw}");
                let long = format!("{name}v {dw}, {nw}, {mw}");
                check_any(|a| a.shift(w, shift, d, n, m), &[text, long]);
            }
            for (from, count) in [(3, 5), (1, 4), (16, 9)] {
                let ends = format!("{dw}, {nw}, {from}, {count}");
                check(|a| a.ubfx(w, d, n, from, count), format!("ubfx {ends}"));
                check(|a| a.sbfx(w, d, n, from, count), format!("sbfx {ends}"));
                check(|a| a.bfi(w, d, n, from, count), format!("bfi {ends}"));
                check(|a| a.ubfiz(w, d, n, from, count), format!("ubfiz {ends}"));
            }
            check(|a| a.rev(w, d, n), format!("rev {dw}, {nw}"));
            check(|a| a.rev16(w, d, n), format!("rev16 {dw}, {nw}"));
            check(|a| a.clz(w, d, n), format!("clz {dw}, {nw}"));
            check(|a| a.cls(w, d, n), format!("cls {dw}, {nw}"));
            for (c, cond) in CONDS {
                let text = format!("csel {dw}, {nw}, {mw}, {cond}");
                check(|a| a.csel(w, d, n, m, c), text);
                let text = format!("csinc {dw}, {nw}, {mw}, {cond}");
                check(|a| a.csinc(w, d, n, m, c), text);
                check(|a| a.cset(w, d, c), format!("cset {dw}, {cond}"));
            }
        }
    }
    for (c, _) in CONDS {
        assert_eq!(c.negated().negated(), c);
        assert_eq!(c.negated() as u8, c as u8 ^ 1);
    }
}

/// A branch over `between` instructions, forwards and backwards; `name` with its first operands.
fn branch(make: impl Fn(&mut Asm, Label), name: &str, between: usize) {
    let far = 4 * (between as i64 + 1);
    let code = bytes(|a| {
        let l = a.label();
        make(a, l);
        (0..between).for_each(|_| a.ret());
        a.bind(l);
    });
    assert_eq!(texts(&code[..4]), [format!("{name}{far}")]);
    let code = bytes(|a| {
        let l = a.here_label();
        (0..between).for_each(|_| a.ret());
        make(a, l);
    });
    let back = 4 * between as i64;
    let found = texts(&code[4 * between..]);
    let texts = [format!("{name}-{back}"), format!("{name}{back}")];
    assert!(
        found[0] == texts[0] || between == 0 && found[0] == texts[1],
        "{found:?} {texts:?}"
    );
}
/// Checks that a branch reaches a label that many bytes away, and none beyond.
fn reaches(make: impl Fn(&mut Asm, Label), bytes: u32) {
    for (more, reached) in [(0, true), (1, false)] {
        let mut a = Asm::new();
        let l = a.label();
        make(&mut a, l);
        (0..bytes / 4 - 2 + more).for_each(|_| a.ret());
        a.bind(l);
        assert_eq!(
            a.finish().is_some(),
            reached,
            "forwards, {bytes} and {more}"
        );
        let mut a = Asm::new();
        let l = a.here_label();
        (0..bytes / 4 + more).for_each(|_| a.ret());
        make(&mut a, l);
        assert_eq!(
            a.finish().is_some(),
            reached,
            "backwards, {bytes} and {more}"
        );
    }
}

#[test]
fn branches() {
    for between in [0, 1, 1000] {
        branch(|a, l| a.b(l), "b ", between);
        branch(|a, l| a.bl(l), "bl ", between);
        for (c, cond) in CONDS {
            branch(|a, l| a.b_cond(c, l), &format!("b.{cond} "), between);
        }
        for t in regs() {
            for w in WIDTHS {
                let t_name = r(w, t);
                branch(|a, l| a.cbz(w, t, l), &format!("cbz {t_name}, "), between);
                branch(|a, l| a.cbnz(w, t, l), &format!("cbnz {t_name}, "), between);
            }
            for n in [0, 1, 31, 32, 63] {
                let t_name = r(if n > 31 { X } else { W }, t);
                branch(
                    |a, l| a.tbz(t, n, l),
                    &format!("tbz {t_name}, {n}, "),
                    between,
                );
                branch(
                    |a, l| a.tbnz(t, n, l),
                    &format!("tbnz {t_name}, {n}, "),
                    between,
                );
            }
            branch(|a, l| a.adr(t, l), &format!("adr {}, ", r(X, t)), between);
        }
    }
    reaches(|a, l| a.tbz(Reg(1), 3, l), 1 << 15);
    reaches(|a, l| a.tbnz(Reg(1), 3, l), 1 << 15);
    reaches(|a, l| a.b_cond(Cond::Eq, l), 1 << 20);
    reaches(|a, l| a.cbz(X, Reg(1), l), 1 << 20);
    reaches(|a, l| a.adr(Reg(1), l), 1 << 20);
    for n in regs() {
        check(|a| a.br(n), format!("br {}", r(X, n)));
        check(|a| a.blr(n), format!("blr {}", r(X, n)));
    }
    check(|a| a.ret(), "ret");
    check(|a| a.brk(7), "brk 7");
    check(|a| a.dmb_ish(), "dmb ish");
    check(|a| a.dmb_ishld(), "dmb ishld");
    check(|a| a.isb(), "isb");
    let code = bytes(|a| a.udf());
    assert_eq!(code, [0; 4]);
    // Out of the code.
    for to in [BASE, BASE + 4, BASE + (1 << 27) - 4, BASE - (1 << 27)] {
        let d = to.wrapping_sub(BASE) as i64;
        check(|a| a.b_abs(to), format!("b {d}"));
        check(|a| a.bl_abs(to), format!("bl {d}"));
    }
    for to in [BASE + (1 << 27), BASE - (1 << 27) - 4, BASE + 2] {
        assert!(finished(|a| a.b_abs(to)).place(BASE).is_none(), "{to:#x}");
    }
    let code = bytes(|a| {
        a.ret();
        a.bl_abs(BASE);
    });
    assert_eq!(texts(&code[4..]), ["bl -4"]);
    // A label without a place.
    let mut a = Asm::new();
    let l = a.label();
    assert_eq!(a.offset(l), None);
    a.b(l);
    assert!(a.finish().is_none());
}

#[test]
fn floats() {
    for (d, n, m) in threes() {
        let (dv, nv, mv) = (Vec64(d.0), Vec64(n.0), Vec64(m.0));
        for (op, name) in [
            (Float::Add, "fadd"),
            (Float::Sub, "fsub"),
            (Float::Mul, "fmul"),
            (Float::Div, "fdiv"),
        ] {
            let text = format!("{name} d{}, d{}, d{}", d.0, n.0, m.0);
            check(|a| a.float(op, dv, nv, mv), text);
        }
        check(|a| a.fmov(dv, nv), format!("fmov d{}, d{}", d.0, n.0));
        check(|a| a.fabs(dv, nv), format!("fabs d{}, d{}", d.0, n.0));
        check(
            |a| a.fmov_from(d, nv),
            format!("fmov {}, d{}", r(X, d), n.0),
        );
        check(|a| a.fmov_to(dv, n), format!("fmov d{}, {}", d.0, r(X, n)));
        check(|a| a.scvtf(dv, n), format!("scvtf d{}, {}", d.0, r(X, n)));
        check(|a| a.fcmp(nv, mv), format!("fcmp d{}, d{}", n.0, m.0));
        check(|a| a.cnt(dv, nv), format!("cnt v{}.8b, v{}.8b", d.0, n.0));
        check(|a| a.addv(dv, nv), format!("addv b{}, v{}.8b", d.0, n.0));
    }
}

#[test]
fn data_and_places() {
    let code = bytes(|a| {
        assert_eq!(a.here(), 0);
        let first = a.here_label();
        a.ret();
        let later = a.label();
        a.distance(0, later);
        a.distance(4, first);
        a.address_of(later);
        a.bind(later);
        assert_eq!(a.offset(later), Some(20));
        let same = a.label_at(4);
        assert_eq!(a.offset(same), Some(4));
        a.address_of(same);
    });
    assert_eq!(code[4..8], 20u32.to_le_bytes());
    assert_eq!(code[8..12], (-4i32).to_le_bytes());
    assert_eq!(code[12..20], (BASE + 20).to_le_bytes());
    assert_eq!(code[20..], (BASE + 4).to_le_bytes());
    for n in [4, 8, 16, 32] {
        for before in 0..8 {
            let mut end = 0;
            let code = bytes(|a| {
                (0..before).for_each(|_| a.ret());
                a.align(n);
                end = a.here();
            });
            assert_eq!(end % n, 0);
            assert!(end < 4 * before + n);
            assert!(
                texts(&code[4 * before as usize..])
                    .iter()
                    .all(|t| t == "nop")
            );
        }
    }
}

/// Each public method of the assembler is called in this file.
#[test]
fn every_form_is_here() {
    let asm = include_str!("../src/asm/a64.rs");
    let here = include_str!("asm_a64.rs");
    let methods = asm.split("impl Asm").skip(1).collect::<String>();
    let called =
        |m: &&str| !here.contains(&format!("a.{m}(")) && !here.contains(&format!("Asm::{m}("));
    let missing: Vec<&str> = methods
        .split("pub fn ")
        .skip(1)
        .map(|m| m.split(['(', '<']).next().unwrap_or_default())
        .filter(|m| called(m) && *m != "with_capacity")
        .collect();
    assert!(missing.is_empty(), "forms without a check: {missing:?}");
}
