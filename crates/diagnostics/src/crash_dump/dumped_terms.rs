//! Terms in a crash dump. Each object is on a line of its own, keyed by its address; objects
//! without a plain structure are in the external term format.

use base64_lines::encode;
use purlin_term::etf::encode as external;
use purlin_term::layout::FLATMAP_KEYS;
use purlin_term::word::Subtag;
use purlin_term::{Term, arith, atom, print};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

/// Objects that are written, and those still to be written.
#[derive(Default)]
pub struct Objects {
    done: HashSet<usize>,
    todo: Vec<Term>,
}

/// Counted binaries that heaps refer to, by the address of their bytes.
#[derive(Default)]
pub struct Binaries(BTreeMap<usize, Cow<'static, [u8]>>);

impl Binaries {
    /// Remembers the bytes that a term shares with others. Returns their address and the term's
    /// offset in them; `None` if it shares none, or begins between two of them. They must stay
    /// until [`Binaries::write`].
    fn add(&mut self, t: Term) -> Option<(usize, usize)> {
        let whole = t.whole();
        whole.block()?;
        let (part, all) = (t.as_bits()?, whole.as_bits()?);
        if part.bit_offset != 0 {
            return None;
        }
        let at = all.base as usize;
        // One that grows is seen with several lengths.
        let bytes = all.to_bytes()?;
        let old = self.0.entry(at).or_default();
        if old.len() <= bytes.len() {
            *old = bytes;
        }
        Some((at, part.base as usize - at))
    }
    /// Writes the bytes of all of them.
    pub fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        for (at, bytes) in &self.0 {
            writeln!(w, "=binary:{at:X}")?;
            write!(w, "{:X}:", bytes.len())?;
            encode(w, bytes)?;
            writeln!(w)?;
        }
        Ok(())
    }
}

fn text(t: Term) -> String {
    print::format_term(t, print::Style::Display, 1 << 16)
}

impl Objects {
    /// Writes a term as part of a line, and remembers the object that it refers to.
    pub fn element(&mut self, w: &mut dyn Write, t: Term) -> io::Result<()> {
        if t.is_list_ptr() || t.is_boxed() {
            let at = t.ptr() as usize;
            if self.done.insert(at) {
                self.todo.push(t);
            }
            write!(w, "H{at:X}")
        } else if t.is_nil() {
            write!(w, "N")
        } else if t.is_atom() {
            let name = atom::name(t);
            write!(w, "A{:X}:{name}", name.len())
        } else if let Some(n) = t.as_small() {
            write!(w, "I{n}")
        } else if t.is_local_pid() {
            write!(w, "P{}", text(t))
        } else if t.is_local_port() {
            write!(w, "p{}", text(t).trim_start_matches("#Port"))
        } else {
            Ok(())
        }
    }

    fn elements(&mut self, w: &mut dyn Write, all: &[Term]) -> io::Result<()> {
        for (i, &t) in all.iter().enumerate() {
            if i > 0 {
                write!(w, ",")?;
            }
            self.element(w, t)?;
        }
        Ok(())
    }

    /// Writes all objects that were referred to, and everything that they refer to. The bytes of
    /// counted binaries are left to `binaries`, if it is given.
    pub fn write(
        &mut self,
        w: &mut dyn Write,
        mut binaries: Option<&mut Binaries>,
    ) -> io::Result<()> {
        while let Some(t) = self.todo.pop() {
            write!(w, "{:X}:", t.ptr() as usize)?;
            if let Some((head, tail)) = t.as_cons() {
                write!(w, "l")?;
                self.element(w, head)?;
                write!(w, "|")?;
                self.element(w, tail)?;
            } else if let Some(all) = t.as_tuple() {
                write!(w, "t{:X}:", all.len())?;
                self.elements(w, all)?;
            } else if let Some(f) = t.as_float() {
                let s = print::format_float_scientific(f, 20);
                write!(w, "F{:X}:{s}", s.len())?;
            } else if t.is_big() {
                write!(w, "B{}", arith::print(t, 10).unwrap_or_default())?;
            } else if t.subtag() == Some(Subtag::ExtPid) {
                write!(w, "P{}", text(t))?;
            } else if let Some((_, values)) = t.as_flatmap() {
                write!(w, "Mf{:X}:", values.len())?;
                // SAFETY: a flat map's keys are the tuple in that word.
                let keys = unsafe { *t.ptr().add(FLATMAP_KEYS) };
                self.element(w, keys)?;
                write!(w, ":")?;
                self.elements(w, values)?;
            } else if let Some(b) = t.as_binary() {
                match binaries.as_mut().and_then(|all| all.add(t)) {
                    Some((at, offset)) => write!(w, "Yc{at:X}:{offset:X}:{:X}", b.len())?,
                    None => {
                        write!(w, "Yh{:X}:", b.len())?;
                        encode(w, &b)?;
                    }
                }
            } else {
                let bytes = external::encode(t, external::Options::default());
                write!(w, "E{:X}:", bytes.len())?;
                encode(w, &bytes)?;
            }
            writeln!(w)?;
        }
        Ok(())
    }
}

mod base64_lines {
    use std::io::{self, Write};

    /// Writes bytes in base 64.
    pub fn encode(w: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for c in bytes.chunks(3) {
            let n = c.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - c.len()));
            let mut out = [b'='; 4];
            for (i, o) in out.iter_mut().enumerate().take(c.len() + 1) {
                *o = DIGITS[(n >> (18 - 6 * i)) as usize & 63];
            }
            w.write_all(&out)?;
        }
        Ok(())
    }
}
