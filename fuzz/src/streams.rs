//! Module `zlib`. Input: a program of calls on one stream, each a byte followed by its arguments.

use crate::Input;
use crate::world::World;
use purlin_runtime::cx::Fail;
use purlin_term::{Alloc, Term, atom};

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut w = World::new();
    let Ok(stream) = w.native("zlib", "open_nif", &[]) else {
        return;
    };
    // Each call gives at most a few kilobytes, so that small inputs can't make much.
    for _ in 0..64 {
        if input.0.is_empty() {
            break;
        }
        let (op, a) = (input.byte(), input.byte());
        let n = |v: u8| Term::small(i64::from(v as i8));
        let _ = match op % 19 {
            0..=3 => begin(&mut w, stream, op % 19, a, &mut input),
            4..=6 => {
                let bytes = if a & 1 == 0 {
                    input.short()
                } else {
                    std::mem::take(&mut input.0)
                };
                let (front, back) = bytes.split_at(bytes.len().min(a as usize));
                let parts = [w.cx.binary(front), w.cx.binary(back)];
                let iovec = w.cx.list(&parts);
                w.native("zlib", "enqueue_nif", &[stream, iovec])
            }
            7 | 8 => {
                let f = if op & 1 == 0 {
                    "inflate_nif"
                } else {
                    "deflate_nif"
                };
                let (most_in, most_out) = (Term::small(1 << (a & 15)), Term::small(1 << (a >> 4)));
                w.native("zlib", f, &[stream, most_in, most_out, n(input.byte() % 7)])
            }
            9 => w.native(
                "zlib",
                "inflate_nif",
                &[stream, Term::small(8192), Term::small(16384), n(a % 7)],
            ),
            10 => w.native(
                "zlib",
                "deflate_nif",
                &[stream, Term::small(8192), Term::small(16384), n(a % 7)],
            ),
            11 | 12 => {
                let dictionary = w.cx.binary(input.short());
                let f = ["deflateSetDictionary_nif", "inflateSetDictionary_nif"][op as usize & 1];
                w.native("zlib", f, &[stream, dictionary])
            }
            13 => w.native(
                "zlib",
                "deflateParams_nif",
                &[stream, n(a), n(input.byte())],
            ),
            14 => {
                let f = [
                    "inflateReset_nif",
                    "deflateReset_nif",
                    "inflateEnd_nif",
                    "deflateEnd_nif",
                ];
                w.native("zlib", f[a as usize & 3], &[stream])
            }
            15 => {
                let f = [
                    "inflateGetDictionary_nif",
                    "crc32_nif",
                    "getStash_nif",
                    "clearStash_nif",
                    "getBufSize_nif",
                ];
                w.native("zlib", f[a as usize % 5], &[stream])
            }
            16 => w.native(
                "zlib",
                "setBufSize_nif",
                &[stream, Term::small(i64::from(a) * 16)],
            ),
            17 => {
                let t = w.cx.tuple(&[atom::intern("stash"), n(a)]);
                w.native("zlib", "setStash_nif", &[stream, t])
            }
            _ => w.native("zlib", "close_nif", &[stream]),
        };
    }
}

/// Initialises the stream for input or output, in one of four ways.
fn begin(w: &mut World, stream: Term, way: u8, a: u8, input: &mut Input) -> Result<Term, Fail> {
    let n = |v: u8| Term::small(i64::from(v as i8));
    match way {
        0 => w.native(
            "zlib",
            "inflateInit_nif",
            &[stream, n(input.byte()), n(a % 4)],
        ),
        1 => {
            let bits = [15, -15, 31, 47, 8, -8][a as usize % 6];
            w.native(
                "zlib",
                "inflateInit_nif",
                &[stream, Term::small(bits), n(a >> 4 & 3)],
            )
        }
        2 => {
            let (bits, memory, strategy) = (n(input.byte()), n(input.byte()), n(a >> 4));
            let args = [stream, n(a % 12), Term::small(8), bits, memory, strategy];
            w.native("zlib", "deflateInit_nif", &args)
        }
        _ => {
            let bits = [15, -15, 31, 9][a as usize % 4];
            let args = [
                stream,
                n(a >> 2 & 7),
                Term::small(8),
                Term::small(bits),
                Term::small(8),
                Term::small(0),
            ];
            w.native("zlib", "deflateInit_nif", &args)
        }
    }
}
