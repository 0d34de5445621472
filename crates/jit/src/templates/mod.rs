//! The templates: what each op is in machine code. See the head of [`quick`](super).

use super::*;
use purlin_term::layout::TUPLE_FIRST;

mod arith;
mod bits;
mod build;
mod calls;
mod floats;
mod lists;
mod maps;
mod natives;
mod select;
mod shortcuts;
mod tests;
mod tuples;

impl<'a, 'e> Gen<'a, 'e> {
    pub(super) fn template(&mut self, i: &Instruction) {
        let a = i.args();
        match i.op {
            Op::Move => self.mov(a[0], a[1]),
            Op::Swap => {
                let p = self.get(a[0], R10);
                let q = self.get(a[1], R11);
                if p != R10 && q != R11 {
                    self.a.mov(RCX, p);
                    self.a.mov(p, q);
                    self.a.mov(q, RCX);
                } else {
                    // The one that is in memory is written first.
                    self.a.mov(RCX, p);
                    self.put(a[0], q);
                    self.put(a[1], RCX);
                }
            }
            Op::InitY => self.put_word(a[0], NIL_WORD),
            Op::InitYs => {
                for r in self.sources(i) {
                    self.put_word(r, NIL_WORD);
                }
            }
            Op::Allocate | Op::AllocateZero => self.allocate(a[0].n(), 0, a[1].n(), i.op),
            Op::AllocateHeap | Op::AllocateHeapZero => {
                self.allocate(a[0].n(), a[1].n(), a[2].n(), i.op)
            }
            Op::TestHeap => self.room(a[0].n(), a[1].n()),
            Op::Deallocate => self.drop_frame(a[0].n()),
            Op::Trim => {
                self.a.alu_i(Q, Add, E, a[0].n() as i32 * 8);
                self.a.store_i(at(E, 0), 0);
            }
            Op::Return => self.ret(),
            Op::Jump => {
                let to = self.to(a[0]);
                self.a.jmp(to);
            }
            Op::Call => {
                self.push_return();
                self.call_local(a[0], false);
                self.returned();
            }
            Op::CallLast => {
                self.drop_frame(a[1].n());
                self.call_local(a[0], true);
            }
            Op::CallOnly => self.call_local(a[0], true),
            Op::CallExt => {
                self.push_return();
                self.export_target(a[0]);
                self.a.call_r(R11);
                self.returned();
            }
            Op::CallExtLast | Op::CallExtOnly => {
                if i.op == Op::CallExtLast {
                    self.drop_frame(a[1].n());
                }
                self.export_target(a[0]);
                self.a.jmp_r(R11);
            }
            Op::CallFun => self.call_fun(a[0].n(), Arg::X(a[0].n() as u16), None),
            Op::CallFun2 => self.call_fun(a[0].n(), a[1], None),
            Op::CallFunLast => self.call_fun(a[0].n(), Arg::X(a[0].n() as u16), Some(a[1].n())),
            Op::CallFun2Last => self.call_fun(a[0].n(), a[1], Some(a[2].n())),
            Op::Apply => self.apply(a[0].n(), None),
            Op::ApplyLast => self.apply(a[1].n(), Some(a[0].n())),
            Op::CallBif | Op::CallBifLast | Op::CallBifOnly
                if (self.env.changes_code)(a[0].n()) =>
            {
                let pc = self.pc(i.at);
                self.leave_to(pc);
                if let Some(l) = self.label_at(i.next) {
                    let next = self.pc(i.next);
                    self.returns.push((next, l));
                }
            }
            Op::CallBif => self.call_bif(i),
            Op::CallBifLast => self.call_bif_returning(i, Some(a[2].n())),
            Op::CallBifOnly => self.call_bif_returning(i, None),
            Op::Nif => self.nif(i),
            Op::DebugLine | Op::TypeSwitch => {}
            // Natives that are called here leave no other trace of who has called them.
            Op::Running => {
                let running = self.env.fields.running;
                self.a.load(R11, at(CX, running));
                self.store_word(at(R11, 0), a[0].n());
            }
            Op::Badmatch
            | Op::CaseEnd
            | Op::TryCaseEnd
            | Op::IfEnd
            | Op::Badrecord
            | Op::Raise
            | Op::FuncInfo => self.raise(i),
            // What is rare, or leaves in any case.
            Op::ErrorHandler
            | Op::ProcessExit
            | Op::Hibernate
            | Op::Hibernated
            | Op::Wait
            | Op::WaitTimeout
            | Op::LoopRecEnd
            | Op::IApply
            | Op::IApplyLast
            | Op::IApplyFun
            | Op::IApplyFunLast
            | Op::CallDirty => {
                let pc = self.pc(i.at);
                self.leave_to(pc);
                // What it calls returns to code that is compiled.
                if i.op.row().effects.calls
                    && !i.op.row().effects.ends
                    && let Some(l) = self.label_at(i.next)
                {
                    let next = self.pc(i.next);
                    self.returns.push((next, l));
                }
            }
            // Lists and tuples.
            Op::GetList => self.get_list(a[0], a[1], a[2]),
            Op::GetHd => {
                let p = self.get(a[0], R10);
                let d = self.dst(a[1], RCX);
                self.a.load(d, at(p, -(TAG_LIST as i32)));
                self.put(a[1], d);
            }
            Op::GetTl => {
                let p = self.get(a[0], R10);
                let d = self.dst(a[1], RCX);
                self.a
                    .load(d, at(p, CONS_TAIL as i32 * 8 - TAG_LIST as i32));
                self.put(a[1], d);
            }
            Op::PutList => {
                self.store_arg(at(HP, 0), a[0]);
                self.store_arg(at(HP, 8), a[1]);
                self.made(a[2], TAG_LIST, 2);
            }
            Op::GetTupleElement => self.element(a[0], a[1].n(), a[2]),
            Op::GetTupleElementFar => self.element(a[0], a[2].n(), a[1]),
            Op::GetTupleElements2 => {
                let p = self.get(a[0], R10);
                let offset = a[1].n() as i32 - TAG_BOXED as i32;
                // Both are read before the first is written: it may be the tuple's own register.
                self.a.load(R11, at(p, offset));
                let d = self.dst(a[3], RCX);
                self.a.load(d, at(p, offset + 8));
                if d != RCX && self.dst(a[2], R11) == d {
                    self.put(a[3], d);
                } else {
                    self.put(a[2], R11);
                    self.put(a[3], d);
                }
            }
            Op::PutTuple => {
                let elements = self.sources(i);
                self.put_tuple(&elements, a[0]);
            }
            Op::PutTuple2 => self.put_tuple(&a[..2], a[2]),
            Op::PutTuple3 => self.put_tuple(&a[..3], a[3]),
            Op::UpdateRecord => self.update_record(i),
            // Tests.
            Op::IsLt => self.less(a[0], a[1], a[2], true),
            Op::IsGe => self.less(a[0], a[1], a[2], false),
            Op::IsEq => self.equal(a[0], a[1], a[2], false, true),
            Op::IsNe => self.equal(a[0], a[1], a[2], false, false),
            Op::IsEqExact => self.equal(a[0], a[1], a[2], true, true),
            Op::IsNeExact => self.equal(a[0], a[1], a[2], true, false),
            Op::IsEqImmed | Op::IsNeImmed => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.cmp_word(r, a[2].n());
                let c = match i.op {
                    Op::IsEqImmed => Cond::Ne,
                    _ => Cond::E,
                };
                self.a.jcc(c, to);
            }
            Op::IsNil => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.cmp_word(r, NIL_WORD);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsInRange => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                if self.range(a[1]).is_none() {
                    let other = self.step_aside();
                    self.if_not_small(r, other);
                }
                self.cmp_word(r, a[2].n());
                self.a.jcc(Cond::L, to);
                self.cmp_word(r, a[3].n());
                self.a.jcc(Cond::G, to);
            }
            Op::IsInteger | Op::IsNumber if self.range(a[1]).is_some() => {}
            Op::IsInteger
            | Op::IsFloat
            | Op::IsNumber
            | Op::IsAtom
            | Op::IsPid
            | Op::IsPort
            | Op::IsReference
            | Op::IsBitstr
            | Op::IsBinary
            | Op::IsList
            | Op::IsNonemptyList
            | Op::IsTuple
            | Op::IsFunction
            | Op::IsBoolean
            | Op::IsMap => self.test_type(i),
            Op::IsFunction2 => self.is_function2(i),
            Op::IsTupleOfArity => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.if_not_boxed(r, to);
                self.cmp_mem_word(boxed(r, 0), a[2].n());
                self.a.jcc(Cond::Ne, to);
            }
            Op::TestArity => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.cmp_mem_word(boxed(r, 0), a[2].n());
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsTaggedTuple => {
                let r = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.if_not_boxed(r, to);
                self.cmp_mem_word(boxed(r, 0), a[2].n());
                self.a.jcc(Cond::Ne, to);
                self.cmp_mem_word(boxed(r, TUPLE_FIRST), a[3].n());
                self.a.jcc(Cond::Ne, to);
            }
            Op::SelectVal => self.select_val(i),
            Op::SelectArity => self.select_arity(i),
            Op::JumpTable => self.jump_table(i),
            // Arithmetic.
            Op::Add | Op::Sub => self.add_sub(i),
            Op::Mul => self.mul(i),
            Op::IntDiv | Op::Rem => self.div_rem(i),
            Op::Band | Op::Bor | Op::Bxor => self.bitwise(i),
            Op::Bsl | Op::Bsr => self.shift(i),
            // Shortcuts for natives.
            Op::FastElement => self.fast_element(i),
            Op::FastElementOf => self.fast_element_of(i),
            Op::FastHd | Op::FastTl => {
                let Some(over) = self.over(i) else {
                    return self.step(i);
                };
                let Some(next) = self.label_at(i.next) else {
                    return self.step(i);
                };
                let r = self.get(a[0], R10);
                self.if_not_cons(r, next);
                let d = self.dst(a[1], RCX);
                let word = i32::from(i.op == Op::FastTl) * 8;
                self.a.load(d, at(r, word - TAG_LIST as i32));
                self.put(a[1], d);
                self.a.jmp(over);
            }
            Op::FastTupleSize => {
                let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
                    return self.step(i);
                };
                let r = self.get(a[0], R10);
                self.if_not_tuple(r, next);
                // The arity stands above six bits of the header.
                self.a.load(RCX, boxed(r, 0));
                self.a.shift_i(Q, Shr, RCX, 2);
                self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                self.put(a[1], RCX);
                self.a.jmp(over);
            }
            Op::FastMapGet | Op::FastIsMapKey => self.fast_map_get(i),
            Op::FastMapSize => self.fast_map_size(i),
            Op::FastByteSize => self.fast_byte_size(i),
            Op::FastLength => self.fast_length(i),
            Op::FastCompare => self.fast_compare(i),
            Op::Bif1 | Op::Bif2 => self.bif(i),
            // Exceptions.
            Op::Catch => {
                let to = a[1].label().unwrap_or(i.at);
                // Whoever raises goes on there in machine code.
                if let Some(l) = self.label_at(to) {
                    self.returns.push((self.pc(to), l));
                }
                let w = purlin_term::Term::catch(self.pc(to)).raw();
                self.put_word(a[0], w);
            }
            Op::TryEnd => self.put_word(a[0], NIL_WORD),
            Op::TryCase => {
                self.put_word(a[0], NIL_WORD);
                for n in 0..3 {
                    self.a.mov(X_REGS[n], X_REGS[n + 1]);
                }
            }
            Op::CatchEnd => {
                self.put_word(a[0], NIL_WORD);
                let caught = self.step_aside();
                let none = self.env.no_value;
                self.cmp_word(RAX, none);
                self.a.jcc(Cond::E, caught);
            }
            // Maps.
            Op::GetMapElements => self.get_map_elements(i),
            Op::HasMapFields => self.has_map_fields(i),
            Op::PutMapAssoc | Op::PutMapExact => self.put_map(i),
            Op::NewMap => self.new_map(i),
            // Funs.
            Op::MakeFun => self.make_fun(i),
            // Floats.
            Op::FLoad | Op::FConv => self.fload(i),
            Op::FStore => self.fstore(i),
            Op::FMove => self.fmove(i),
            Op::FAdd => self.float(i, Sse::Add),
            Op::FSub => self.float(i, Sse::Sub),
            Op::FMul => self.float(i, Sse::Mul),
            Op::FDiv => self.float(i, Sse::Div),
            // Bit strings.
            Op::BsContext => self.start_match(a[1], a[1]),
            Op::BsStartMatch if a[4].n() == 0 => self.start_match(a[1], a[2]),
            Op::BsSkipBits => self.skip_bits(i),
            Op::BsGetPosition => {
                let c = self.get(a[0], R10);
                self.a.load(RCX, boxed(c, MATCH_POSITION));
                self.a.shift_i(Q, Shl, RCX, SMALL_SHIFT as u8);
                self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                self.put(a[1], RCX);
            }
            Op::BsSetPosition => {
                let c = self.get(a[0], R10);
                let p = self.get(a[1], R11);
                let after = self.a.label();
                self.a.mov(RCX, p);
                self.a.shift_i(Q, Sar, RCX, SMALL_SHIFT as u8);
                self.a.alu_m(Q, Cmp, RCX, boxed(c, MATCH_END));
                self.a.jcc(Cond::A, after);
                self.a.store(boxed(c, MATCH_POSITION), RCX);
                self.a.bind(after);
            }
            Op::BsGetByte => self.get_byte(i),
            Op::BsGetSmall => self.get_small(i),
            Op::BsSkipFixed => {
                let c = self.get(a[1], R10);
                let to = self.to(a[0]);
                let n = a[2].n();
                self.a.load(R11, boxed(c, MATCH_POSITION));
                self.add_word(R11, n);
                self.a.alu_m(Q, Cmp, R11, boxed(c, MATCH_END));
                self.a.jcc(Cond::A, to);
                self.a.store(boxed(c, MATCH_POSITION), R11);
            }
            Op::BsTestTail => {
                let c = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.a.load(R11, boxed(c, MATCH_END));
                self.a.alu_m(Q, Sub, R11, boxed(c, MATCH_POSITION));
                match a[2].n() as i32 as i64 == a[2].n() as i64 {
                    true => self.a.alu_i(Q, Cmp, R11, a[2].n() as i32),
                    false => {
                        self.a.mov_i(RCX, a[2].n());
                        self.a.alu(Q, Cmp, R11, RCX);
                    }
                }
                self.a.jcc(Cond::Ne, to);
            }
            Op::BsTestUnit if a[2].n().is_power_of_two() && a[2].n() <= 128 => {
                let c = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.a.load(R11, boxed(c, MATCH_END));
                self.a.alu_m(Q, Sub, R11, boxed(c, MATCH_POSITION));
                self.a.test32_i(R11, a[2].n() as u32 - 1);
                self.a.jcc(Cond::Ne, to);
            }
            Op::BsGetTail => self.get_tail(i),
            Op::BsGetBinary => self.get_binary(i),
            Op::BsGetUtf | Op::BsSkipUtf => self.get_utf(i),
            Op::BsMatch => self.bs_match(i),
            Op::BsCreateBin => self.create_bin(i),
            _ => self.step(i),
        }
    }
    /// The members of a list of sources or registers.
    pub(super) fn sources(&self, i: &Instruction) -> Vec<Arg> {
        let (from, n) = (i.list.0 as usize, i.list.1 as usize);
        let words = self.f.code.get(from..from + n).unwrap_or_default();
        words.iter().map(|&w| source(w)).collect()
    }
    pub(super) fn list(&self, i: &Instruction) -> &'a [u64] {
        let (from, n) = (i.list.0 as usize, i.list.1 as usize);
        self.f.code.get(from..from + n).unwrap_or_default()
    }
    /// A cold place that makes a step of the whole instruction and comes back behind its template.
    pub(super) fn step_aside(&mut self) -> Label {
        let l = self.a.label();
        let i = self.whole;
        self.later(move |g| {
            g.a.bind(l);
            g.whole = i;
            g.step(&i);
            match g.label_at(i.next) {
                Some(next) => g.a.jmp(next),
                None => {
                    let pc = g.pc(i.next);
                    g.leave_to(pc);
                }
            }
        });
        l
    }
    /// The value of a constant that is a small integer.
    fn small(a: Arg) -> Option<i64> {
        match a {
            Arg::C(w) if is_small_word(w) => Some((w as i64) >> SMALL_SHIFT),
            _ => None,
        }
    }
    /// The label behind the call of the native that a shortcut stands before.
    pub(super) fn over(&self, i: &Instruction) -> Option<Label> {
        let next = decode_at(&self.f, i.next)?;
        self.label_at(next.next)
    }
    pub(super) fn add_word(&mut self, r: Reg, n: u64) {
        match i32::try_from(n) {
            Ok(n) => self.a.alu_i(Q, Add, r, n),
            Err(_) => {
                self.a.mov_i(RCX, n);
                self.a.alu(Q, Add, r, RCX);
            }
        }
    }
    /// The object at the top of the heap is done: so many words.
    pub(super) fn made(&mut self, dst: Arg, tag: u64, words: i32) {
        let d = self.dst(dst, RCX);
        self.a.lea(d, at(HP, tag as i32));
        self.put(dst, d);
        self.a.alu_i(Q, Add, HP, words * 8);
    }
}

/// Bytes from a map's term to the word before its first value.
const VALUES_BEFORE: i32 = (FLATMAP_HEAD_WORDS as i32 - 1) * 8 - TAG_BOXED as i32;
