//! Runs the operations of this machine, on operands at their limits, and compares registers and
//! ways with what the operation means. Code is entered and left by the stubs.
//!
//! It runs as a program of the processor: for aarch64, on a machine of its own or under qemu-user.
#![cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux"
))]

use purlin_jit::machine::*;
use purlin_jit::stubs::{Exits, make};
use purlin_jit::{Fields, Helpers, Stubs};
use std::cell::Cell;
use std::mem::offset_of;

/// The part of a context that the stubs know; the X registers and some words beside them first.
#[repr(C)]
#[derive(Default)]
struct Cx {
    x: [u64; 32],
    stop: u64,
    htop: u64,
    reds: i64,
    machine_base: u64,
    returns: u64,
    interp_pc: u64,
    interp_live: u64,
    interp_exit: u64,
    gc_wanted: u64,
    chaos: i64,
    other: u64,
    far: [u64; 32],
    farther: [[u64; 32]; 32],
    last: u64,
}
const OTHER: i32 = offset_of!(Cx, other) as i32;
const FIELDS: Fields = Fields {
    proc: OTHER,
    window: OTHER,
    fr: OTHER,
    htop: offset_of!(Cx, htop) as i32,
    stop: offset_of!(Cx, stop) as i32,
    gc_wanted: offset_of!(Cx, gc_wanted) as i32,
    reds: offset_of!(Cx, reds) as i32,
    off_heap_bytes: OTHER,
    vheap_bytes: OTHER,
    bif_pc: OTHER,
    interp_pc: offset_of!(Cx, interp_pc) as i32,
    interp_live: offset_of!(Cx, interp_live) as i32,
    interp_exit: offset_of!(Cx, interp_exit) as i32,
    running: OTHER,
    machine_base: offset_of!(Cx, machine_base) as i32,
    returns: offset_of!(Cx, returns) as i32,
    key_hints: OTHER,
    chaos: offset_of!(Cx, chaos) as i32,
};
/// The instruction at which code exits, and the mark of an exit.
const PC: u64 = 0x4000_0100;

macro_rules! all_the_same {
    ($( $name:ident($($p:ident: $k:ident),*) -> $r:ident [$($fx:ident)*] $doc:literal; )*) => {
        fn helpers(address: u64) -> Helpers {
            Helpers { $($name: address.into()),* }
        }
    };
}
purlin_isa::for_each_helper!(all_the_same);

/// A helper that changes registers that C does not keep, and an X register in the context.
extern "C" fn mixed(cx: *mut Cx, a: u64, b: u64, c: u64) -> u64 {
    // SAFETY: called by machine code with its context.
    unsafe { (*cx).x[4] += 1 };
    a.wrapping_mul(3) ^ b.wrapping_mul(5) ^ c
}

const AREA: usize = 1 << 16;

/// Memory below 2^31 with the stubs, and room for one function.
struct Area {
    at: *mut u8,
    function: usize,
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
        // Tests run at the same time.
        let at = (0..256)
            .map(|k| map((1 << 28) + k * AREA))
            .find(|&at| at as usize <= (1 << 31) - AREA)
            .expect("memory below 2^31");
        let exits = Exits {
            yields: 3,
            waits: 4,
        };
        let helper = mixed as *const () as u64;
        let (bytes, stubs) = make(Processor::HOST, at as u64, &FIELDS, &helpers(helper), exits)
            .expect("stubs are near each other");
        let area = Area {
            at: at.cast(),
            function: bytes.len().next_multiple_of(32),
            stubs,
        };
        area.put(0, &bytes);
        area
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= AREA);
        self.allow(libc::PROT_WRITE);
        // SAFETY: within the mapping.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(offset), bytes.len());
        }
        self.allow(libc::PROT_EXEC);
        #[cfg(target_arch = "aarch64")]
        {
            unsafe extern "C" {
                fn __clear_cache(from: *mut u8, to: *mut u8);
            }
            // SAFETY: within the mapping.
            unsafe { __clear_cache(self.at.add(offset), self.at.add(offset + bytes.len())) };
        }
    }
    fn allow(&self, what: i32) {
        // SAFETY: the whole mapping; nothing runs it now.
        let r = unsafe { libc::mprotect(self.at.cast(), AREA, libc::PROT_READ | what) };
        assert_eq!(r, 0);
    }
    /// Runs a function from behind its count; returns the next instruction.
    fn enter(&self, cx: &mut Cx, make: impl FnOnce(&mut Host, &Stubs)) -> u64 {
        let mut m = Host::begin(1024, true);
        let used_up = m.label();
        m.enter_function(used_up);
        assert_eq!(m.here(), Host::INNER);
        make(&mut m, &self.stubs);
        m.mov_i(A, PC);
        m.leave_to(self.stubs.exit);
        m.bind(used_up);
        m.mov_i(A, PC);
        m.mov_i(R, 2);
        m.leave_to(self.stubs.yields);
        let at = self.at as u64 + self.function as u64;
        let code = m.finish().expect("all labels have places");
        self.put(self.function, &code.place(at).expect("all is near"));
        // SAFETY: the stub that enters machine code.
        unsafe {
            let enter: extern "C" fn(*mut Cx, u64) -> u64 =
                std::mem::transmute(self.stubs.enter as usize);
            enter(cx, at + u64::from(Host::INNER))
        }
    }
    /// Runs a function with these X registers, and returns them behind it.
    fn run(&self, x: &[u64], make: impl FnOnce(&mut Host, &Stubs)) -> [u64; 6] {
        let mut cx = context(x);
        assert_eq!(self.enter(&mut cx, make), PC | 1, "it exits at its end");
        std::array::from_fn(|k| cx.x[k])
    }
}
fn context(x: &[u64]) -> Box<Cx> {
    let mut cx = Box::new(Cx {
        reds: 100,
        ..Cx::default()
    });
    cx.x[..x.len()].copy_from_slice(x);
    cx
}

const X: [Reg; 6] = X_REGS;
use Width::{D, Q};

/// Numbers around the limits of immediates, widths and tags.
const WORDS: [u64; 18] = [
    0,
    1,
    15,
    0xFF,
    0xFFF,
    0x1000,
    0x1001,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    0x1234_5678_9ABC_DEFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    0xFFFF_FFFF_FFFF_FFF0,
    u64::MAX - 0xFFF,
    u64::MAX - 1,
    u64::MAX,
];
const NUMBERS: [i32; 12] = [
    0,
    1,
    -1,
    15,
    -16,
    0xFFF,
    0x1000,
    -0x1001,
    0x12_3456,
    0x7FF0,
    i32::MAX,
    i32::MIN,
];
const CONDS: [Cond; 10] = [
    Cond::E,
    Cond::Ne,
    Cond::B,
    Cond::Ae,
    Cond::Be,
    Cond::A,
    Cond::L,
    Cond::Ge,
    Cond::Le,
    Cond::G,
];

/// Whether the comparison has that result.
fn holds(c: Cond, a: u64, b: u64) -> bool {
    let (s, t) = (a as i64, b as i64);
    match c {
        Cond::E => a == b,
        Cond::Ne => a != b,
        Cond::B => a < b,
        Cond::Ae => a >= b,
        Cond::Be => a <= b,
        Cond::A => a > b,
        Cond::L => s < t,
        Cond::Ge => s >= t,
        Cond::Le => s <= t,
        Cond::G => s > t,
        Cond::S => s < 0,
        Cond::Ns => s >= 0,
    }
}

/// Writes code that makes X5 1 if an operation jumps to its label, and otherwise 0.
fn taken(m: &mut Host, operation: impl FnOnce(&mut Host, purlin_jit::asm::Label)) {
    let (l, end) = (m.label(), m.label());
    operation(m, l);
    m.mov_i(X[5], 0);
    m.jmp(end);
    m.bind(l);
    m.mov_i(X[5], 1);
    m.bind(end);
}

#[test]
fn sums_and_bits() {
    let area = Area::new();
    let all = [Alu::Add, Alu::Sub, Alu::And, Alu::Or, Alu::Xor];
    let of = |op: Alu, a: u64, b: u64| match op {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::And => a & b,
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
    };
    for a in WORDS {
        for op in all {
            for b in WORDS {
                let x = area.run(&[a, b, a, a], |m, _| {
                    m.alu(Q, op, X[2], X[1]);
                    m.alu(D, op, X[3], X[1]);
                    m.store(at(CX, 8 * 8), X[1]);
                    m.mov(X[4], X[0]);
                    if matches!(op, Alu::Add | Alu::Sub) {
                        m.alu_m(op, X[4], at(CX, 8 * 8));
                    }
                });
                assert_eq!(x[2], of(op, a, b), "{op:?} {a:#x} {b:#x}");
                assert_eq!(x[3], u64::from(of(op, a, b) as u32), "{op:?} {a:#x} {b:#x}");
                if matches!(op, Alu::Add | Alu::Sub) {
                    assert_eq!(x[4], of(op, a, b), "{op:?} {a:#x} {b:#x}");
                }
            }
            for n in NUMBERS {
                let x = area.run(&[a, a], |m, _| {
                    m.alu_i(Q, op, X[0], n);
                    m.alu_i(D, op, X[1], n);
                });
                let right = of(op, a, n as u64);
                assert_eq!(x[0], right, "{op:?} {a:#x} {n:#x}");
                assert_eq!(x[1], u64::from(right as u32), "{op:?} {a:#x} {n:#x}");
            }
        }
        let x = area.run(&[a, a, a, a, a, a], |m, _| {
            m.inc(X[0]);
            m.dec(X[1]);
            m.bswap(Q, X[2]);
            m.bswap(D, X[3]);
            m.mov32(X[4], X[4]);
            m.zero(X[5]);
        });
        let narrow = a as u32;
        let right = [
            a.wrapping_add(1),
            a.wrapping_sub(1),
            a.swap_bytes(),
            narrow.swap_bytes().into(),
            narrow.into(),
            0,
        ];
        assert_eq!(x, right, "{a:#x}");
        for n in [0, 1, 31] {
            let x = area.run(&[a, a, a, a, n], |m, _| {
                m.mov(R, X[4]);
                m.shift_by_r(Q, Shift::Shl, X[0]);
                m.shift_by_r(Q, Shift::Shr, X[1]);
                m.shift_by_r(Q, Shift::Sar, X[2]);
                m.shift_by_r(D, Shift::Shr, X[3]);
            });
            let right = [a << n, a >> n, (a as i64 >> n) as u64, (narrow >> n).into()];
            assert_eq!(x[..4], right, "{a:#x} by {n}");
            if n == 0 {
                continue;
            }
            let x = area.run(&[a, a, a, a], |m, _| {
                m.shift_i(Q, Shift::Shl, X[0], n as u8);
                m.shift_i(Q, Shift::Shr, X[1], n as u8);
                m.shift_i(Q, Shift::Sar, X[2], n as u8);
                m.shift_i(D, Shift::Shr, X[3], n as u8);
            });
            assert_eq!(x[..4], right, "{a:#x} by {n}");
        }
        if Host::counts_bits() {
            for n in [0, 1, 7, 15] {
                let x = area.run(&[a & 0xFFFF, n, a & 0xFFFF], |m, _| {
                    m.mov(R, X[1]);
                    m.bits_below(X[0], R);
                    m.popcount(X[2]);
                    taken(m, |m, l| m.if_no_bit(X[1], X[1], l));
                });
                assert_eq!(x[0], a & 0xFFFF & ((1 << n) - 1), "{a:#x} below {n}");
                assert_eq!(x[2], u64::from((a & 0xFFFF).count_ones()));
                assert_eq!(x[5], u64::from(n >> n & 1 == 0), "bit {n}");
            }
        }
    }
}

#[test]
fn ways_out() {
    let area = Area::new();
    let way = |x: [u64; 6]| x[5] == 1;
    for a in WORDS {
        for b in WORDS {
            let (s, t) = (a as i64, b as i64);
            for (op, right) in [(Alu::Add, s.checked_add(t)), (Alu::Sub, s.checked_sub(t))] {
                let by_register = area.run(&[a, b], |m, _| {
                    taken(m, |m, l| m.sum_or(op, X[0], X[1], Some(l)));
                });
                let by_number = area.run(&[a], |m, _| {
                    taken(m, |m, l| m.sum_i_or(op, X[0], b, Some(l)));
                });
                for x in [by_register, by_number] {
                    let found = (!way(x)).then_some(x[0] as i64);
                    assert_eq!(found, right, "{op:?} {a:#x} {b:#x}");
                }
            }
            let x = area.run(&[a, b, a], |m, _| {
                m.store(at(CX, 72), X[1]);
                taken(m, |m, l| m.add_m_or(X[0], at(CX, 72), l));
            });
            assert_eq!(
                (!way(x)).then_some(x[0] as i64),
                s.checked_add(t),
                "{a:#x} {b:#x}"
            );
            let x = area.run(&[a, b, a], |m, _| {
                taken(m, |m, l| m.mul_or(X[0], X[1], Some(l)));
                m.mul(X[2], X[1]);
            });
            assert_eq!(
                (!way(x)).then_some(x[0] as i64),
                s.checked_mul(t),
                "{a:#x} {b:#x}"
            );
            assert_eq!(x[2], a.wrapping_mul(b));
        }
        for n in NUMBERS {
            let x = area.run(&[a], |m, _| {
                taken(m, |m, l| m.mul_i_or(X[0], n, Some(l)));
            });
            let right = (a as i64).checked_mul(n.into());
            assert_eq!((!way(x)).then_some(x[0] as i64), right, "{a:#x} {n:#x}");
            if n >= 0 {
                let x = area.run(&[a], |m, _| {
                    taken(m, |m, l| m.sub_i_or_below(X[0], n, l));
                });
                let right = a.checked_sub(n as u64);
                assert_eq!((!way(x)).then_some(x[0]), right, "{a:#x} {n:#x}");
            }
        }
        for c in [Cond::E, Cond::Ne, Cond::S, Cond::Ns] {
            let x = area.run(&[a], |m, _| {
                taken(m, |m, l| m.dec_if(c, X[0], l));
            });
            let less = a.wrapping_sub(1);
            assert_eq!((x[0], way(x)), (less, holds(c, less, 0)), "{c:?} {a:#x}");
            let x = area.run(&[a], |m, _| {
                taken(m, |m, l| m.untag_or(X[0], c, l));
            });
            let n = (a as i64 >> 4) as u64;
            assert_eq!((x[0], way(x)), (n, holds(c, n, 0)), "{c:?} {a:#x}");
            for w in [D, Q] {
                let x = area.run(&[a], |m, _| {
                    taken(m, |m, l| m.if_zero(c, w, X[0], l));
                });
                let n = if w == D { a as u32 as i32 as u64 } else { a };
                assert_eq!(way(x), holds(c, n, 0), "{c:?} {w:?} {a:#x}");
            }
        }
    }
    let smalls = [1, 2, 7, -7, 1 << 40, (1 << 59) - 1, -(1 << 59), 0];
    for a in smalls {
        for b in smalls.into_iter().filter(|&b| b != 0) {
            let x = area.run(&[(a << 4 | 15) as u64, b as u64, 5], |m, _| {
                for (d, quotient) in [(X[3], true), (X[4], false)] {
                    m.mov(B, X[0]);
                    m.mov(R, X[1]);
                    m.divide(quotient);
                    m.mov(d, R);
                }
            });
            assert_eq!([x[3] as i64, x[4] as i64], [a / b, a % b], "{a} {b}");
            assert_eq!(x[2], 5);
        }
        let x = area.run(&[(a << 4 | 15) as u64, a as u64, a as u64], |m, _| {
            m.untag(X[0], X[0]);
            m.tag(Q, X[1]);
            m.tag(D, X[2]);
        });
        let tagged = (a << 4 | 15) as u64;
        assert_eq!(x[..3], [a as u64, tagged, u64::from(tagged as u32)]);
    }
}

#[test]
fn comparisons() {
    let area = Area::new();
    let way = |x: [u64; 6]| x[5] == 1;
    for a in WORDS {
        for b in WORDS {
            for c in CONDS {
                let right = holds(c, a, b);
                let all = area.run(&[a, b, 0, 0, 0], |m, _| {
                    m.store(at(CX, 80), X[1]);
                    taken(m, |m, l| m.if_r(c, Q, X[0], X[1], l));
                    m.mov(X[2], X[5]);
                    taken(m, |m, l| m.if_word(c, X[0], b, l));
                    m.mov(X[3], X[5]);
                    taken(m, |m, l| m.if_m(c, X[0], at(CX, 80), l));
                    m.mov(X[4], X[5]);
                    m.store(at(CX, 80), X[0]);
                    m.save(X[0]);
                    taken(m, |m, l| m.if_r_restoring(c, X[0], X[1], l));
                    // It has taken back what was saved.
                    m.mov(X[0], X[1]);
                });
                assert_eq!(all[2..], [u64::from(right); 4], "{c:?} {a:#x} {b:#x}");
                assert_eq!(all[0], a);
                let narrow = area.run(&[a, b], |m, _| {
                    taken(m, |m, l| m.if_r(c, D, X[0], X[1], l));
                });
                let of = |n: u64| n as u32 as i32 as u64;
                assert_eq!(way(narrow), holds(c, of(a), of(b)), "{c:?} {a:#x} {b:#x}");
                let unsigned = matches!(c, Cond::E | Cond::Ne | Cond::B | Cond::Ae | Cond::A);
                let x = area.run(&[a, b, 7, 9], |m, _| {
                    m.store(at(CX, 80), X[0]);
                    if unsigned {
                        taken(m, |m, l| m.if_mem_word(c, at(CX, 80), b, l));
                    }
                    m.mov(X[4], X[5]);
                    m.choose(c, Operands::Word(X[0], b), 11, 1 << 40);
                    m.mov(X[5], R);
                    m.select(c, Operands::Regs(X[0], X[1]), X[2], X[3]);
                });
                assert_eq!(
                    x[5],
                    if right { 11 } else { 1 << 40 },
                    "{c:?} {a:#x} {b:#x}"
                );
                assert_eq!(x[2], if right { 9 } else { 7 }, "{c:?} {a:#x} {b:#x}");
                assert!(!unsigned || x[4] == u64::from(right), "{c:?} {a:#x} {b:#x}");
            }
        }
        for n in NUMBERS {
            for c in CONDS {
                let x = area.run(&[a], |m, _| {
                    m.store(at(CX, 80), X[0]);
                    taken(m, |m, l| m.if_i(c, Q, X[0], n, l));
                    m.mov(X[1], X[5]);
                    taken(m, |m, l| m.if_i(c, D, X[0], n, l));
                    m.mov(X[2], X[5]);
                    taken(m, |m, l| m.if_mi(c, at(CX, 80), n, l));
                    m.mov(X[3], X[5]);
                    taken(m, |m, l| m.if_count(c, at(CX, 80), n, l));
                });
                let (whole, low) = (n as u64, a as u32 as i32 as u64);
                let right = [a, low, a, a].map(|n| holds(c, n, whole));
                let found = [x[1], x[2], x[3], x[5]].map(|w| w == 1);
                assert_eq!(found, right, "{c:?} {a:#x} {n:#x}");
            }
        }
        for c in [Cond::E, Cond::Ne] {
            for mask in [1u8, 2, 3, 5, 0x3F, 0x80, 0xFF] {
                let x = area.run(&[a], |m, _| {
                    m.store(at(CX, 80), X[0]);
                    taken(m, |m, l| m.if_bits(c, X[0], mask, l));
                    m.mov(X[1], X[5]);
                    taken(m, |m, l| m.if_byte(c, at(CX, 80), mask, l));
                });
                let right = holds(c, a & u64::from(mask), 0);
                assert_eq!(x[1] == 1, right, "{c:?} {a:#x} {mask:#x}");
                assert_eq!(x[5] == 1, holds(c, a & 0xFF, mask.into()));
            }
            for bits in [1, 3, 12, 31] {
                let mask = (1u32 << bits) - 1;
                let x = area.run(&[a], |m, _| {
                    taken(m, |m, l| m.if_bits32(c, X[0], mask, l));
                });
                assert_eq!(way(x), holds(c, a & u64::from(mask), 0));
            }
            for (mask, value) in [(0x3F, 0x0B), (15, 15), (15, 3), (3, 3)] {
                let x = area.run(&[a], |m, _| {
                    taken(m, |m, l| m.if_masked(c, X[0], mask, value, R, l));
                });
                assert_eq!(way(x), holds(c, a & u64::from(mask), value.into()));
            }
        }
    }
}

#[test]
fn tags() {
    let area = Area::new();
    // A small integer, an atom, other immediates, a list, a boxed term.
    let terms = [0x15Fu64, 0x208B, 0x3F, 0x3B, 0x13, 0x1001, 0x1002, u64::MAX];
    for a in terms {
        let is = |mask: u64, tag: u64| a & mask == tag;
        let ways: [(bool, fn(&mut Host, purlin_jit::asm::Label)); 7] = [
            (!is(15, 15), |m, l| m.if_not_small(X[0], R, l)),
            (is(15, 15), |m, l| m.if_small(X[0], R, l)),
            (!is(3, 2), |m, l| m.if_not_boxed(X[0], R, l)),
            (is(3, 2), |m, l| m.if_boxed(X[0], R, l)),
            (!is(3, 1), |m, l| m.if_not_cons(X[0], R, l)),
            (is(3, 3), |m, l| m.if_immediate(X[0], R, true, l)),
            (!is(3, 3), |m, l| m.if_immediate(X[0], R, false, l)),
        ];
        for (k, (right, way)) in ways.into_iter().enumerate() {
            let x = area.run(&[a], |m, _| taken(m, way));
            assert_eq!(x[5] == 1, right, "{a:#x}, test {k}");
            assert_eq!(x[0], a);
        }
        for b in terms {
            let both = |mask: u64| a & b & mask == mask;
            let x = area.run(&[a, b], |m, _| {
                taken(m, |m, l| m.if_not_both_small(X[0], X[1], l));
                m.mov(X[2], X[5]);
                taken(m, |m, l| m.if_both_immediate(X[0], X[1], l));
            });
            assert_eq!(
                [x[2] == 1, x[5] == 1],
                [!both(15), both(3)],
                "{a:#x} {b:#x}"
            );
        }
    }
}

#[test]
fn memory() {
    let area = Area::new();
    let far = offset_of!(Cx, farther) as i32;
    let last = offset_of!(Cx, last) as i32;
    for disp in [64, 72, 81, 255, far, far + 4, far + 4099, last] {
        let word = 0x1122_3344_5566_77F8u64;
        let x = area.run(&[word, 0, 0, 0, 0, 0], |m, _| {
            m.store(at(CX, disp), X[0]);
            m.load(X[1], at(CX, disp));
            m.load32(X[2], at(CX, disp));
            m.load16(X[3], at(CX, disp));
            m.load8(X[4], at(CX, disp));
            m.store8(at(CX, disp), X[3]);
            m.lea(X[5], at(CX, disp));
            m.load(X[5], at(X[5], 0));
        });
        let right = [word, word, 0x5566_77F8, 0x77F8, 0xF8, word];
        assert_eq!(x, right, "at {disp}");
        for scale in [1u8, 2, 4, 8] {
            let place =
                |index: i64| indexed(CX, X[1], scale, disp - index as i32 * i32::from(scale));
            for index in [0i64, 1, 3, -1, 1000] {
                let x = area.run(&[word, index as u64], |m, _| {
                    m.store(place(index), X[0]);
                    m.load(X[2], place(index));
                    m.load8(X[3], place(index));
                    m.lea(X[4], place(index));
                    m.load(X[4], at(X[4], 0));
                    m.load16(X[5], at(CX, disp));
                });
                assert_eq!(x[2..], [word, 0xF8, word, 0x77F8], "{disp} {index} {scale}");
            }
        }
        for n in NUMBERS {
            let x = area.run(&[0, 0, 0, 0], |m, _| {
                m.store_i(at(CX, disp), n);
                m.load(X[0], at(CX, disp));
                m.store8_i(at(CX, disp), 0x5A);
                m.load8(X[1], at(CX, disp));
                m.store_word(at(CX, disp), 0x1234_5678_9ABC_DEF0, R);
                m.load(X[2], at(CX, disp));
                m.load(X[3], at(CX, disp));
            });
            let wide = 0x1234_5678_9ABC_DEF0;
            assert_eq!(x[..4], [n as u64, 0x5A, wide, wide], "{disp} {n:#x}");
        }
    }
    // The top of the stack, around the distances that one instruction has.
    let middle = far + 4096;
    for bytes in [
        -8, -24, -128, -256, -264, -2048, 0, 8, 120, 128, 248, 256, 2048,
    ] {
        let x = area.run(&[u64::MAX], |m, _| {
            m.lea(E, at(CX, middle + bytes));
            m.store(at(E, 0), X[0]);
            m.mov(X[1], E);
            m.lea(E, at(CX, middle));
            m.move_stack(bytes);
            m.load(X[2], at(E, 0));
            m.mov(X[3], E);
        });
        assert_eq!((x[2], x[3]), (0, x[1]), "by {bytes}");
    }
    // Words next to each other, upwards and downwards, and with a register that is the base.
    for (disp, step) in [
        (64, 8),
        (504, 8),
        (520, 8),
        (80, -8),
        (496, -8),
        (67, 8),
        (64, 16),
    ] {
        let x = area.run(&[0x1111, 0x2222], |m, _| {
            m.store(at(CX, disp), X[0]);
            m.store(at(CX, disp + step), X[1]);
            m.load(X[2], at(CX, disp));
            m.load(X[3], at(CX, disp + step));
            m.store_i(at(CX, disp), 77);
            m.store_i(at(CX, disp + step), 77);
            m.mov_i(B, 78);
            m.load(X[4], at(CX, disp + step));
            m.load(X[5], at(CX, disp));
            m.alu(Q, Alu::Add, X[5], B);
        });
        assert_eq!(x[2..], [0x1111, 0x2222, 77, 77 + 78], "at {disp}");
        let x = area.run(&[0x1111, 0x2222], |m, _| {
            m.lea(X[2], at(CX, disp));
            m.store(at(X[2], 0), X[2]);
            m.store(at(X[2], step), X[1]);
            m.mov(X[4], X[2]);
            m.load(X[2], at(X[2], 0));
            m.load(X[3], at(X[2], step));
            m.load(X[5], at(X[4], 0));
            m.load(X[5], at(X[4], step));
        });
        assert_eq!((x[2], x[3], x[5]), (x[4], 0x2222, 0x2222), "at {disp}");
    }
    // A frame whose first slot is written.
    for bytes in [-8, -24, -256, -264, -520] {
        let x = area.run(&[0x1111, 0x2222], |m, _| {
            m.lea(E, at(CX, middle));
            m.move_stack(bytes);
            m.store(at(E, 8), X[0]);
            m.store(at(E, 16), X[1]);
            m.load(X[2], at(E, 0));
            m.load(X[3], at(E, 8));
            m.load(X[4], at(E, 16));
        });
        assert_eq!(x[2..5], [0, 0x1111, 0x2222], "by {bytes}");
    }
    // Words that are near one that was stored just now.
    let near = 0x4000_1130u64;
    for other in [
        near,
        near + 8,
        near - 8,
        near + 0x1000,
        near - 0x123,
        near + 0x12_3456,
        5,
    ] {
        let x = area.run(&[], |m, _| {
            m.store_word(at(CX, 64), near, R);
            m.mov_i(X[0], other);
            m.load(X[1], at(CX, 64));
        });
        assert_eq!(x[..2], [other, near]);
    }
    // A loaded word that goes elsewhere at once.
    for disp in [64, far + 4099] {
        let x = area.run(&[0x1122_3344_5566_7788, 3], |m, _| {
            m.store(at(CX, disp), X[0]);
            m.load(R, at(CX, disp));
            m.mov_result(X[2], R);
            m.load8(B, indexed(CX, X[1], 1, disp));
            m.mov_result(X[3], B);
            m.load(R, indexed(CX, X[1], 8, disp - 24));
            m.mov_result(X[4], R);
        });
        let word = 0x1122_3344_5566_7788;
        assert_eq!(x[2..5], [word, 0x55, word], "at {disp}");
    }
    let x = area.run(&[1, 2, 4, 0, 0, 0], |m, _| {
        m.save(X[0]);
        m.save(X[1]);
        m.saved(X[3]);
        m.or_saved(X[2]);
        m.restore(X[4]);
        m.restore(X[5]);
    });
    assert_eq!(x[3..], [2, 6, 1]);
    let x = area.run(&[1, 2, 3], |m, _| {
        m.spare();
        m.mov_i(T, 40);
        m.mov_i(U, 2);
        m.mov(R, T);
        m.alu(Q, Alu::Add, R, U);
        m.unspare();
        m.mov(X[2], R);
    });
    assert_eq!(x[..3], [1, 2, 42]);
    for k in 0..3u64 {
        let x = area.run(&[k], |m, _| {
            let (table, end) = (m.label(), m.label());
            let places = [m.label(), m.label(), m.label()];
            m.mov(R, X[0]);
            m.jump_by_table(table);
            for (n, l) in places.into_iter().enumerate() {
                m.bind(l);
                m.mov_i(X[1], 100 + n as u64);
                m.jmp(end);
            }
            m.align(8);
            m.bind(table);
            places.into_iter().for_each(|l| m.table_entry(l));
            m.bind(end);
        });
        assert_eq!(x[1], 100 + k);
    }
}

#[test]
fn doubles() {
    let area = Area::new();
    let all = [
        0.0,
        -0.0,
        1.5,
        -2.25,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    for a in all {
        for b in all {
            let x = area.run(&[a.to_bits(), b.to_bits()], |m, _| {
                for k in 0..2 {
                    m.store(at(CX, 80 + 8 * k), X[k as usize]);
                }
                for (k, op) in [Float::Add, Float::Sub, Float::Mul, Float::Div]
                    .into_iter()
                    .enumerate()
                {
                    m.load_float(Vector(4 + k as u8), at(CX, 80));
                    m.load_float(Vector(1), at(CX, 88));
                    m.float(op, Vector(4 + k as u8), Vector(1));
                    m.mov_float(Vector(0), Vector(4 + k as u8));
                    m.store_float(at(CX, 96), Vector(0));
                    m.load(X[1 + k], at(CX, 96));
                }
                m.load_float(Vector(0), at(CX, 80));
                taken(m, |m, l| m.if_float_above(Vector(0), Vector(1), l));
                m.mov(X[0], X[5]);
                taken(m, |m, l| m.if_not_finite(Vector(0), R, l));
            });
            let right = [a + b, a - b, a * b, a / b];
            for (found, right) in x[1..5].iter().zip(right) {
                let found = f64::from_bits(*found);
                assert!(found.to_bits() == right.to_bits() || found.is_nan() && right.is_nan());
            }
            assert_eq!([x[0] == 1, x[5] == 1], [a > b, !a.is_finite()], "{a} {b}");
        }
    }
    for n in WORDS {
        let x = area.run(&[n], |m, _| {
            m.to_float(Vector(11), X[0]);
            m.store_float(at(CX, 96), Vector(11));
            m.load(X[1], at(CX, 96));
        });
        assert_eq!(f64::from_bits(x[1]), n as i64 as f64);
    }
}

#[test]
fn calls_and_stubs() {
    let area = Area::new();
    let stack = [Cell::new(0u64), Cell::new(0), Cell::new(0)];
    let base = [0u64; 3];
    // A return to a frame without a machine call: the bytecode address in the slot.
    let mut cx = context(&[7]);
    cx.returns = base.as_ptr() as u64;
    cx.stop = stack.as_ptr() as u64;
    stack[0].set(PC + 8);
    let next = area.enter(&mut cx, |m, _| {
        m.inc(X[0]);
        m.ret();
    });
    assert_eq!((next, cx.x[0], stack[0].get()), (PC + 8, 8, 0));
    // A helper and a leaf helper: arguments, result, registers that C does not keep.
    for leaf in [false, true] {
        let mut cx = context(&[1, 2, 3, 4, 5, 6]);
        cx.htop = 0x1000;
        let next = area.enter(&mut cx, |m, s| {
            m.mov_i(A, 11);
            m.mov_i(R, 22);
            m.mov_i(K, 33);
            m.mov_i(B, mixed as *const () as u64);
            m.call_stub(if leaf { s.leaf_helper } else { s.helper });
            m.mov(X[0], R);
        });
        assert_eq!(next, PC | 1);
        let result = mixed(&mut *context(&[]), 11, 22, 33);
        assert_eq!(cx.x[..6], [result, 2, 3, 4, 6, 6]);
    }
    // A native with two arguments: X0 alone is live behind it.
    let mut cx = context(&[1, 2]);
    let next = area.enter(&mut cx, |m, s| {
        m.mov_i(A, 11);
        m.mov_i(B, mixed as *const () as u64);
        m.call_stub(s.bif[2]);
        m.inc(X[0]);
    });
    assert_eq!((next, cx.x[0]), (PC | 1, 2));
    // A time slice that ends in a loop of tail calls; then one within calls, which are dropped.
    for nested in [false, true] {
        let mut cx = context(&[0]);
        cx.reds = 10;
        let next = area.enter(&mut cx, |m, _| {
            let used_up = m.label();
            m.inc(X[0]);
            match nested {
                true => m.call_self(),
                false => m.jump_self(used_up),
            }
            m.trap();
            m.bind(used_up);
            m.mov_i(A, PC);
            m.mov_i(R, 2);
            m.leave_to(area.stubs.yields);
        });
        assert_eq!((next, cx.x[0]), (0, 10), "nested: {nested}");
        assert_eq!((cx.interp_pc, cx.interp_live, cx.interp_exit), (PC, 2, 3));
        assert_eq!(cx.reds, 0);
    }
    // Chaos: counts down, and spoils the words of X registers.
    let mut cx = context(&[1]);
    cx.chaos = 2;
    let next = area.enter(&mut cx, |m, s| {
        taken(m, |m, l| m.if_chance(s.chance, l));
        m.mov(X[1], X[5]);
        taken(m, |m, l| m.if_chance(s.chance, l));
    });
    assert_eq!((next, cx.x[0], cx.x[1], cx.x[5]), (PC | 1, 1, 0, 1));
    // Drops the stack and returns as if there had been no call.
    let mut cx = context(&[3]);
    cx.returns = base.as_ptr() as u64;
    cx.stop = stack.as_ptr() as u64;
    stack[0].set(PC + 16);
    let next = area.enter(&mut cx, |m, s| {
        m.save(X[0]);
        m.drop_stack(FIELDS.machine_base, s.base);
    });
    assert_eq!((next, cx.x[0]), (PC + 16, 3));
    // A next instruction without machine code: all registers are stored already.
    let mut cx = context(&[3]);
    cx.returns = base.as_ptr() as u64;
    let next = area.enter(&mut cx, |m, s| {
        m.mov_i(R, PC + 24);
        m.leave_to(s.resume);
    });
    assert_eq!(next, PC + 24);
}
