//! The driver `trace_file_drv`: writes trace events to a file, or to a series of files of which the
//! oldest are deleted (`dbg:trace_port/2`, `fprof`).
//!
//! A command is `[w Size Count Milliseconds Tail ] n Name`. In the file each event is a byte 0, its
//! size in 32 bits with the most significant byte first, and the event in the external format, as
//! `dbg:trace_client/2` reads it.

use super::settings::{Error, Options};
use super::{Base, Driver, Reply};
use crate::gather::Gather;
use crate::poll;
use crate::posix::errno_of;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;

/// The name by which the driver is opened.
pub(crate) const NAME: &str = "trace_file_drv";
/// The operation of `port_control` that flushes the buffer.
const FLUSH: u32 = b'f' as u32;
/// Bytes of events that are buffered before a write.
const BUFFER_BYTES: usize = 64 * 1024;
/// The first byte of an event.
const EVENT: u8 = 0;

/// Names of a series of files: a number between head and tail, which wraps around after the last.
struct Names {
    head: Vec<u8>,
    tail: Vec<u8>,
    at: u32,
    last: u32,
}

impl Names {
    fn path(&self) -> OsString {
        let number = self.at.to_string();
        OsString::from_vec([&self.head, number.as_bytes(), &self.tail].concat())
    }
    fn step(&mut self) {
        self.at = if self.at >= self.last { 0 } else { self.at + 1 };
    }
}

/// A series of files.
struct Row {
    names: Names,
    /// The number of the oldest file.
    oldest: u32,
    /// Number of files that may still be begun before the oldest is deleted.
    to_spare: u32,
    /// Bytes after which the next file is begun, unless that is done by time.
    limit: u64,
    written: u64,
    /// Milliseconds after which the next file is begun; 0 means by size.
    every_ms: u32,
}

struct TraceFile {
    /// None after a failure.
    out: Option<BufWriter<File>>,
    row: Option<Row>,
}

fn create(path: &OsString) -> io::Result<BufWriter<File>> {
    let mut o = OpenOptions::new();
    let f = o
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o777)
        .open(path)?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, f))
}

/// Takes a word off the front.
fn word<'a>(b: &mut &'a [u8]) -> &'a [u8] {
    let start = b.trim_ascii_start();
    let end = start.iter().position(|&c| c == b' ').unwrap_or(start.len());
    *b = &start[end..];
    &start[..end]
}

/// Takes a number off the front.
fn number(b: &mut &[u8]) -> Result<u32, Error> {
    let text = std::str::from_utf8(word(b)).map_err(|_| Error::BadArg)?;
    text.parse().map_err(|_| Error::BadArg)
}

/// Starts the driver for a port that is opened.
pub fn start(base: &mut Base, _: &Options, mut command: &[u8]) -> Result<Box<dyn Driver>, Error> {
    let c = &mut command;
    word(c);
    let mut kind = word(c);
    let mut wrap = None;
    if kind == b"w" {
        let (size, count, ms) = (number(c)?, number(c)?, number(c)?);
        wrap = Some((size, count, ms, number(c)? as usize));
        kind = word(c);
    }
    let name = match command.strip_prefix(b" ") {
        Some(name) if kind == b"n" && !name.is_empty() && !name.contains(&0) => name,
        _ => return Err(Error::BadArg),
    };
    let row = match wrap {
        Some((size, count, every_ms, tail)) if tail < name.len() => Some(Row {
            names: Names {
                head: name[..tail].to_vec(),
                tail: name[tail..].to_vec(),
                at: 0,
                last: count,
            },
            oldest: 0,
            to_spare: count,
            limit: u64::from(size),
            written: 0,
            every_ms,
        }),
        Some(_) => return Err(Error::BadArg),
        None => None,
    };
    let path = match &row {
        Some(r) => r.names.path(),
        None => OsString::from_vec(name.to_vec()),
    };
    let out = Some(create(&path)?);
    if let Some(ms) = row.as_ref().map(|r| r.every_ms).filter(|&ms| ms > 0) {
        base.after(ms.into(), 0);
    }
    Ok(Box::new(TraceFile { out, row }))
}

impl TraceFile {
    fn write(&mut self, event: &[u8]) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        out.write_all(&[EVENT])?;
        out.write_all(&(event.len() as u32).to_be_bytes())?;
        out.write_all(event)?;
        if let Some(r) = &mut self.row {
            r.written += event.len() as u64 + 5;
            if r.every_ms == 0 && r.written >= r.limit {
                self.next_file()?;
            }
        }
        Ok(())
    }
    /// Begins the next file of a series.
    fn next_file(&mut self) -> io::Result<()> {
        let Some(r) = &mut self.row else {
            return Ok(());
        };
        if let Some(mut out) = self.out.take() {
            out.flush()?;
        }
        r.written = 0;
        r.to_spare = r.to_spare.saturating_sub(1);
        if r.to_spare == 0 {
            let now = std::mem::replace(&mut r.names.at, r.oldest);
            // It may have been deleted already, which does no harm.
            let _ = std::fs::remove_file(r.names.path());
            r.names.step();
            r.oldest = std::mem::replace(&mut r.names.at, now);
        }
        r.names.step();
        self.out = Some(create(&r.names.path())?);
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |o| o.flush())
    }
}

/// Ends the port if something failed.
fn check(base: &mut Base, r: io::Result<()>) {
    if let Err(e) = r {
        base.fail(errno_of(&e));
    }
}

impl Driver for TraceFile {
    fn output(&mut self, base: &mut Base, data: &mut Gather) {
        let r = self.write(&data.to_vec());
        check(base, r);
    }
    fn ready(&mut self, _: &mut Base, _: poll::Id, _: bool, _: bool) {}
    fn timeout(&mut self, base: &mut Base, _: u32) {
        let r = self.next_file();
        if r.is_ok()
            && let Some(r) = &self.row
        {
            base.after(r.every_ms.into(), 0);
        }
        check(base, r);
    }
    fn control(&mut self, base: &mut Base, op: u32, _: &[u8]) -> Option<Reply> {
        if op != FLUSH {
            return None;
        }
        let r = self.flush();
        check(base, r);
        Some(Reply {
            bytes: vec![0],
            binary: false,
        })
    }
    fn write_out(&mut self, base: &mut Base, _: Option<i64>) {
        let r = self.flush();
        check(base, r);
    }
    fn stop(&mut self, _: &mut Base) {
        // Nobody is left to hear of an error now.
        let _ = self.flush();
        self.out = None;
    }
}
