//! Lowering of frames, jumps, messages and exceptions.

use super::emit::count;
use super::flow;
use super::lowering::Lower;
use crate::generic::Operand;
use purlin_isa::genops::{self as g};
use purlin_isa::ops::Op;

impl Lower<'_> {
    /// Lowers an instruction on frames, messages or exceptions, or a jump; returns `false` if it is
    /// none.
    pub(super) fn control(&mut self, op: u8, a: &[Operand]) -> bool {
        let code = self.code;
        match op {
            g::ALLOCATE if !self.clear_frames => {
                self.e.op(Op::Allocate, &[self.h(a[0]), self.h(a[1])])
            }
            g::ALLOCATE | g::ALLOCATE_ZERO => {
                self.e.op(Op::AllocateZero, &[self.h(a[0]), self.h(a[1])])
            }
            g::ALLOCATE_HEAP if !self.clear_frames => self.e.op(
                Op::AllocateHeap,
                &[self.h(a[0]), self.heap(a[1]), self.h(a[2])],
            ),
            g::ALLOCATE_HEAP | g::ALLOCATE_HEAP_ZERO => self.e.op(
                Op::AllocateHeapZero,
                &[self.h(a[0]), self.heap(a[1]), self.h(a[2])],
            ),
            g::TEST_HEAP => self.e.op(Op::TestHeap, &[self.heap(a[0]), self.h(a[1])]),
            g::INIT => {
                let y = self.s(a[0]);
                self.e.op(Op::InitY, &[y]);
            }
            g::INIT_YREGS => {
                let ys = self.list_words(a[0]);
                if let &[y] = &ys[..] {
                    self.e.op(Op::InitY, &[y]);
                    return true;
                }
                let words = &ys;
                self.e
                    .op_list(Op::InitYs, &[count(words.len() as u32)], words);
            }
            g::DEALLOCATE => self.e.op(Op::Deallocate, &[self.h(a[0])]),
            g::TRIM => self.e.op(Op::Trim, &[self.h(a[0])]),
            g::RETURN => self.e.op(Op::Return, &[]),
            g::SEND => self.e.op(Op::Send, &[]),
            g::REMOVE_MESSAGE => self.e.op(Op::RemoveMessage, &[]),
            g::TIMEOUT => self.e.op(Op::Timeout, &[]),
            g::LOOP_REC => {
                let d = self.s(a[1]);
                self.e.op(Op::LoopRec, &[self.label(a[0]), d]);
            }
            g::LOOP_REC_END => self.e.op(Op::LoopRecEnd, &[self.label(a[0])]),
            g::WAIT => self.e.op(Op::Wait, &[self.label(a[0])]),
            g::WAIT_TIMEOUT => {
                let s = self.s(a[1]);
                self.e.op(Op::WaitTimeout, &[self.label(a[0]), s]);
            }
            // Markers without references (OTP 23 and before) only save time.
            g::RECV_MARK | g::RECV_SET => {}
            g::RECV_MARKER_BIND => self.ss(Op::RecvMarkerBind, &a[..2]),
            g::RECV_MARKER_CLEAR => self.ss(Op::RecvMarkerClear, &a[..1]),
            g::RECV_MARKER_RESERVE => self.ss(Op::RecvMarkerReserve, &a[..1]),
            g::RECV_MARKER_USE => self.ss(Op::RecvMarkerUse, &a[..1]),
            g::JUMP if matches!(a[0], Operand::Label(l) if flow::is_handler(code, l)) => {
                self.e.op(Op::IfEnd, &[])
            }
            g::JUMP => self.e.op(Op::Jump, &[self.label(a[0])]),
            g::CATCH | g::TRY => {
                let y = self.s(a[0]);
                self.e.op(Op::Catch, &[y, self.label(a[1])]);
            }
            g::CATCH_END => self.ss(Op::CatchEnd, &a[..1]),
            g::TRY_END => self.ss(Op::TryEnd, &a[..1]),
            g::TRY_CASE => self.ss(Op::TryCase, &a[..1]),
            g::BADMATCH => self.ss(Op::Badmatch, &a[..1]),
            g::CASE_END => self.ss(Op::CaseEnd, &a[..1]),
            g::TRY_CASE_END => self.ss(Op::TryCaseEnd, &a[..1]),
            g::BADRECORD => self.ss(Op::Badrecord, &a[..1]),
            g::IF_END => self.e.op(Op::IfEnd, &[]),
            g::RAISE => self.ss(Op::Raise, &a[..2]),
            g::RAW_RAISE => self.e.op(Op::RawRaise, &[]),
            g::BUILD_STACKTRACE => self.e.op(Op::BuildStacktrace, &[]),
            _ => return false,
        }
        true
    }
}
