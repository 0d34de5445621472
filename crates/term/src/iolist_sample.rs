//! A sample for unit tests, here and in the tests of `purlin_io::gather`.

use super::{Alloc, NIL, Term, append_to};

/// Returns a deep list with bytes, small, large and unaligned binaries, and its bytes.
pub fn sample(cx: &mut dyn Alloc) -> (Term, Vec<u8>) {
    let mut flat = Vec::new();
    let mut t = NIL;
    for i in (0..200_000usize).rev() {
        let item = match i % 7 {
            0 => cx.binary(&[i as u8; 40]),
            1 if i % 1000 == 1 => cx.binary(&[i as u8; 5000]),
            2 => {
                let b = cx.binary(&[0xAB; 301]);
                cx.sub_binary(b, 4, 2400)
            }
            _ => Term::small((i % 256) as i64),
        };
        // Nested to the left now and then, so that depth grows with length.
        let inner = cx.list(&[item]);
        t = if i % 3 == 0 {
            let l = cx.cons(inner, t);
            cx.cons(l, NIL)
        } else {
            cx.cons(item, t)
        };
    }
    append_to(t, &mut flat).expect("an I/O list");
    (t, flat)
}
