//! The driver `ram_file_drv`: files in a block of memory, for module `ram_file`.
//!
//! A command is a code and its arguments; numbers have 32 bits with the most significant byte
//! first. Each command is answered by one message with a code of its own: done, an error name, a
//! number, or a number of bytes and the bytes.

use crate::gather::Gather;
use crate::poll;
use crate::port::settings::{Error, Options};
use crate::port::{Base, Driver};
use crate::posix::errno_atom;
use purlin_term::refusal::may_fail;
use purlin_term::{NIL, am, atom};

/// The name by which the driver is opened.
pub(crate) const NAME: &str = "ram_file_drv";

const OPEN: u8 = 1;
const READ: u8 = 2;
const SEEK: u8 = 3;
const WRITE: u8 = 4;
const SYNC: u8 = 9;
const TRUNCATE: u8 = 14;
const PREAD: u8 = 17;
const PWRITE: u8 = 18;
const DATASYNC: u8 = 19;
const GET: u8 = 30;
const SIZE: u8 = 37;
const ADVISE: u8 = 38;
const ALLOCATE: u8 = 39;

const MODE_READ: i32 = 1;
const MODE_WRITE: i32 = 2;

/// The result of a command.
enum Answer {
    Done,
    Number(usize),
    Bytes(std::ops::Range<usize>),
}

#[derive(Default)]
struct RamFile {
    mode: i32,
    data: Vec<u8>,
    at: usize,
}

/// Starts the driver for a port that is opened.
pub fn start(_: &mut Base, _: &Options, _: &[u8]) -> Result<Box<dyn Driver>, Error> {
    Ok(Box::<RamFile>::default())
}

/// Takes a number off the front of a command.
fn number(b: &mut &[u8]) -> Result<i32, i32> {
    let (head, rest) = b.split_first_chunk::<4>().ok_or(libc::EINVAL)?;
    *b = rest;
    Ok(i32::from_be_bytes(*head))
}

/// As [`number`], for numbers from 0 on.
fn size(b: &mut &[u8]) -> Result<usize, i32> {
    usize::try_from(number(b)?).map_err(|_| libc::EINVAL)
}

impl RamFile {
    /// Executes a command. None if there is no reply.
    fn command(&mut self, command: &[u8]) -> Option<Result<Answer, i32>> {
        let (&op, mut b) = command.split_first()?;
        Some(match op {
            OPEN => self.open(b),
            READ => size(&mut b).and_then(|n| {
                let r = self.range(self.at, n)?;
                self.at = self.at.max(r.end);
                Ok(Answer::Bytes(r))
            }),
            PREAD => size(&mut b).and_then(|at| {
                let n = size(&mut b)?;
                self.range(at, n).map(Answer::Bytes)
            }),
            WRITE => self.write(self.at, b).map(|n| {
                self.at += n;
                Answer::Number(n)
            }),
            PWRITE => size(&mut b).and_then(|at| self.write(at, b).map(Answer::Number)),
            SEEK => self.seek(&mut b),
            TRUNCATE if self.mode & MODE_WRITE == 0 => Err(libc::EACCES),
            TRUNCATE => self.resize(self.at).map(|()| Answer::Done),
            GET => Ok(Answer::Bytes(0..self.data.len())),
            SIZE => Ok(Answer::Number(self.data.len())),
            SYNC | DATASYNC | ADVISE | ALLOCATE if self.mode == 0 => Err(libc::EBADF),
            SYNC | DATASYNC | ADVISE | ALLOCATE => Ok(Answer::Done),
            _ => return None,
        })
    }
    fn open(&mut self, mut b: &[u8]) -> Result<Answer, i32> {
        self.mode = number(&mut b)?;
        self.at = 0;
        self.data.clear();
        self.resize(b.len())?;
        self.data.copy_from_slice(b);
        Ok(Answer::Number(0))
    }
    fn resize(&mut self, n: usize) -> Result<(), i32> {
        let more = n.saturating_sub(self.data.len());
        may_fail(|| self.data.try_reserve(more)).map_err(|_| libc::ENOMEM)?;
        self.data.resize(n, 0);
        Ok(())
    }
    /// The range of at most `n` bytes from `at` on.
    fn range(&self, at: usize, n: usize) -> Result<std::ops::Range<usize>, i32> {
        if self.mode & MODE_READ == 0 {
            return Err(libc::EBADF);
        }
        let start = at.min(self.data.len());
        Ok(start..start + n.min(self.data.len() - start))
    }
    fn write(&mut self, at: usize, b: &[u8]) -> Result<usize, i32> {
        if self.mode & MODE_WRITE == 0 {
            return Err(libc::EBADF);
        }
        let end = at.checked_add(b.len()).ok_or(libc::EINVAL)?;
        // Writing nothing beyond the end also fills the file with zeros up to there.
        if end > self.data.len() {
            self.resize(end)?;
        }
        self.data[at..end].copy_from_slice(b);
        Ok(b.len())
    }
    fn seek(&mut self, b: &mut &[u8]) -> Result<Answer, i32> {
        let (offset, from) = (number(b)? as i64, number(b)?);
        if self.mode == 0 {
            return Err(libc::EBADF);
        }
        let base = match from {
            0 => 0,
            1 => self.at as i64,
            2 => self.data.len() as i64,
            _ => return Err(libc::EINVAL),
        };
        self.at = usize::try_from(base + offset).map_err(|_| libc::EINVAL)?;
        Ok(Answer::Number(self.at))
    }
}

impl Driver for RamFile {
    fn output(&mut self, base: &mut Base, data: &mut Gather) {
        let Some(answer) = self.command(&data.to_vec()) else {
            return;
        };
        let counted = |code: u8, n: usize| {
            let mut v = vec![code];
            v.extend_from_slice(&(n as u32).to_be_bytes());
            v
        };
        let (head, tail) = match answer {
            Ok(Answer::Done) => (vec![0], None),
            Err(e) => {
                let name = atom::name(errno_atom(e));
                ([&[1], name.as_bytes()].concat(), None)
            }
            Ok(Answer::Bytes(r)) => (counted(2, r.len()), Some(&self.data[r])),
            Ok(Answer::Number(n)) => (counted(3, n), None),
        };
        let (id, binary) = (base.id, base.binary);
        base.bytes_in += (head.len() + tail.map_or(0, <[u8]>::len)) as u64;
        base.message(base.connected, |a| {
            let tail = match tail {
                Some(b) if binary => a.binary(b),
                Some(b) => a.byte_list(b, NIL),
                None => NIL,
            };
            let t = a.byte_list(&head, tail);
            let t = a.tuple(&[am::DATA, t]);
            a.tuple(&[id, t])
        });
    }
    fn ready(&mut self, _: &mut Base, _: poll::Id, _: bool, _: bool) {}
    fn stop(&mut self, _: &mut Base) {
        *self = RamFile::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let mut f = RamFile::default();
        let mut run = |c: &[u8]| match f.command(c) {
            Some(Ok(Answer::Done)) => "done".into(),
            Some(Ok(Answer::Number(n))) => n.to_string(),
            Some(Ok(Answer::Bytes(r))) => String::from_utf8_lossy(&f.data[r]).into_owned(),
            Some(Err(e)) => format!("error {e}"),
            None => "nothing".into(),
        };
        assert_eq!(run(&[READ, 0, 0, 0, 3]), format!("error {}", libc::EBADF));
        assert_eq!(run(b"\x01\0\0\0\x03hello"), "0");
        assert_eq!(run(&[READ, 0, 0, 0, 3]), "hel");
        assert_eq!(run(&[READ, 0, 0, 0, 9]), "lo");
        assert_eq!(run(&[READ, 0, 0, 0, 9]), "");
        assert_eq!(run(b"\x04!"), "1");
        assert_eq!(run(b"\x12\0\0\0\x08x"), "1");
        assert_eq!(run(&[GET]), "hello!\0\0x");
        assert_eq!(run(&[SEEK, 255, 255, 255, 254, 0, 0, 0, 1]), "4");
        assert_eq!(run(&[TRUNCATE]), "done");
        assert_eq!(run(&[SIZE]), "4");
        assert_eq!(run(&[PREAD, 0, 0, 0, 1, 0, 0, 0, 2]), "el");
        assert_eq!(run(&[PREAD, 0, 0]), format!("error {}", libc::EINVAL));
        assert_eq!(run(&[77]), "nothing");
        assert_eq!(run(&[]), "nothing");
    }
}
