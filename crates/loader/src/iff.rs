//! The container: an IFF form of type `BEAM`, possibly gzipped as a whole.
//!
//! `"FOR1"`, size, `"BEAM"`, then chunks: four letters, size, data, padding to a multiple of four.
//! All numbers are big-endian and 32 bits wide. Bytes after the form are ignored. If a name occurs
//! twice the last chunk counts.

use crate::error::Fault;
use crate::reader::Reader;
use flate2::read::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

/// Maximum size to which a whole file, or its literals, may inflate.
const MAX_INFLATED_BYTES: usize = 1 << 30;

/// Maximum compression ratio of deflate: a higher claim is false without looking.
const MAX_DEFLATE_RATIO: usize = 1032;

pub(crate) type Chunk = ([u8; 4], Range<usize>);

/// Returns the file's bytes, inflated if they were gzipped.
pub(crate) fn unpack(data: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    if !data.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(data));
    }
    let mut inflated = Vec::new();
    let limit = MAX_INFLATED_BYTES as u64;
    match GzDecoder::new(data)
        .take(limit + 1)
        .read_to_end(&mut inflated)
    {
        Ok(size) if size <= MAX_INFLATED_BYTES => Ok(Cow::Owned(inflated)),
        _ => Err(Fault::Header),
    }
}

/// Returns names and places of the chunks.
pub fn chunks(data: &[u8]) -> Result<Vec<Chunk>, Fault> {
    scan(data).ok_or(Fault::Header)
}

fn scan(data: &[u8]) -> Option<Vec<Chunk>> {
    const HEADER_BYTES: usize = 8;
    let mut reader = Reader::new(data);
    if reader.bytes(4)? != b"FOR1" {
        return None;
    }
    let form_size = reader.u32()? as usize;
    let mut reader = Reader::new(reader.bytes(form_size)?);
    if reader.bytes(4)? != b"BEAM" {
        return None;
    }
    let mut chunks = Vec::with_capacity(16);
    while reader.remaining() > 0 {
        let name = reader.bytes(4)?.try_into().ok()?;
        let size = reader.u32()? as usize;
        let start = HEADER_BYTES + reader.pos();
        reader.bytes(size.checked_next_multiple_of(4)?)?;
        chunks.push((name, start..start + size));
    }
    Some(chunks)
}

/// Inflates zlib data whose declared size is `size` (a smaller one is accepted).
pub(crate) fn inflate(data: &[u8], size: usize) -> Option<Vec<u8>> {
    if size > MAX_INFLATED_BYTES || size > data.len().saturating_mul(MAX_DEFLATE_RATIO) {
        return None;
    }
    let mut out = vec![0; size];
    let mut state = Decompress::new(true);
    let status = state
        .decompress(data, &mut out, FlushDecompress::Finish)
        .ok()?;
    out.truncate(usize::try_from(state.total_out()).ok()?);
    (status == Status::StreamEnd).then_some(out)
}
