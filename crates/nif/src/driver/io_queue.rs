//! The queue of a driver in its port.

use super::abi::{Block, IoVec};
use super::block::Part;
use std::collections::VecDeque;
use std::ffi::c_int;

/// The queue of a port, and the arrays whose addresses C code has.
#[derive(Default)]
pub struct Queue {
    parts: VecDeque<Part>,
    size: usize,
    vector: Vec<libc::iovec>,
    blocks: Vec<*mut Block>,
    /// Whether the arrays match the queue.
    shown: bool,
}

// SAFETY: the addresses are those of blocks that the parts hold.
unsafe impl Send for Queue {}

impl Queue {
    pub fn size(&self) -> usize {
        self.size
    }
    pub fn push(&mut self, p: Part, front: bool) {
        if p.len() == 0 {
            return;
        }
        self.size += p.len();
        match front {
            true => self.parts.push_front(p),
            false => self.parts.push_back(p),
        }
        self.shown = false;
    }
    /// Returns the parts of a vector from `skip` on. None if it has fewer bytes. With `empty`,
    /// empty parts are included, except the first one.
    ///
    /// # Safety
    /// `v` is a valid vector.
    pub unsafe fn parts_of(v: *mut IoVec, mut skip: usize, empty: bool) -> Option<Vec<Part>> {
        // SAFETY: the arrays of a valid vector have `vsize` elements, whose bytes and blocks are
        // alive.
        unsafe {
            if skip > (*v).size {
                return None;
            }
            let mut out = Vec::new();
            for i in 0..(*v).vsize.max(0) as usize {
                let p = &*(*v).iov.add(i);
                let leave = skip.min(p.iov_len);
                let skipped = i == 0 || skip > 0;
                skip -= leave;
                if leave == p.iov_len && (skipped || !empty) {
                    continue;
                }
                let at = (p.iov_base as *const u8).add(leave);
                let n = p.iov_len - leave;
                let block = match (*v).blocks.is_null() {
                    true => std::ptr::null_mut(),
                    false => *(*v).blocks.add(i),
                };
                out.push(match block.is_null() {
                    true => Part::copy_of(std::slice::from_raw_parts(at, n)),
                    false => {
                        let bin = super::block::counted(block);
                        purlin_term::bin::RcBin::retain(bin);
                        Part::taken(bin, at, n)
                    }
                });
            }
            Some(out)
        }
    }
    /// Takes bytes off the front and returns how many are left. None if there are fewer.
    pub fn take(&mut self, mut n: usize) -> Option<usize> {
        if n > self.size {
            return None;
        }
        self.size -= n;
        self.shown = false;
        while n > 0 {
            let Some(p) = self.parts.front_mut() else {
                break;
            };
            let now = n.min(p.len());
            p.skip(now);
            n -= now;
            if p.len() == 0 {
                self.parts.pop_front();
            }
        }
        Some(self.size)
    }
    fn show(&mut self) {
        if !self.shown {
            self.vector = self.parts.iter().map(Part::vector).collect();
            self.blocks = self.parts.iter().map(Part::block).collect();
            self.shown = true;
        }
    }
    /// Returns its vector, valid until the queue changes, and its length.
    pub fn peek(&mut self) -> (*mut libc::iovec, c_int) {
        self.show();
        match self.vector.is_empty() {
            true => (std::ptr::null_mut(), 0),
            false => (self.vector.as_mut_ptr(), self.vector.len() as c_int),
        }
    }
    /// Returns its vector with the blocks.
    pub fn peek_blocks(&mut self) -> IoVec {
        let (iov, vsize) = self.peek();
        IoVec {
            vsize,
            size: self.size,
            iov,
            blocks: self.blocks.as_mut_ptr(),
        }
    }
}
