//! Frames, room on the heap, jumps and returns.

use super::*;

impl<'a, 'e, M: Machine> Gen<'a, 'e, M> {
    pub(super) fn allocate(&mut self, Allocate { frame, live }: Allocate) {
        self.new_frame(frame, 0, live);
    }
    pub(super) fn allocate_zero(&mut self, AllocateZero { frame, live }: AllocateZero) {
        self.new_frame(frame, 0, live);
        self.clear(frame);
    }
    pub(super) fn allocate_heap(&mut self, AllocateHeap { frame, heap, live }: AllocateHeap) {
        self.new_frame(frame, heap, live);
    }
    pub(super) fn allocate_heap_zero(&mut self, op: AllocateHeapZero) {
        let AllocateHeapZero { frame, heap, live } = op;
        self.new_frame(frame, heap, live);
        self.clear(frame);
    }
    /// A frame, and `heap` words of the heap.
    fn new_frame(&mut self, Frame(frame): Frame, heap: u64, live: Live) {
        let n = frame + 1;
        self.room(n + heap, live);
        self.a.move_stack(-(n as i32 * 8));
    }
    fn clear(&mut self, Frame(frame): Frame) {
        for k in 0..frame as u16 {
            self.a.store_i(y(k), NIL_WORD as i32);
        }
    }
    pub(super) fn test_heap(&mut self, TestHeap { heap, live }: TestHeap) {
        self.room(heap, live);
    }
    pub(super) fn deallocate(&mut self, Deallocate { frame }: Deallocate) {
        self.drop_frame(frame);
    }
    pub(super) fn trim(&mut self, Trim { n }: Trim) {
        self.a.move_stack(n.0 as i32 * 8);
    }
    pub(super) fn jump(&mut self, Jump { to }: Jump) {
        let to = self.to(to);
        self.a.jmp(to);
    }
    pub(super) fn return_(&mut self, Return {}: Return) {
        self.ret();
    }
}
