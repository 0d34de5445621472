//! The templates: what each op is in machine code. See the head of [`quick`](super::quick).

use super::*;

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
            Op::Return => self.a.ret(),
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
            Op::CallBifLast => self.returning_step(i, Some(a[2].n())),
            Op::CallBifOnly => self.returning_step(i, None),
            Op::DebugLine | Op::TypeSwitch => {}
            // What is rare, or leaves in any case.
            Op::Badmatch
            | Op::CaseEnd
            | Op::TryCaseEnd
            | Op::IfEnd
            | Op::Badrecord
            | Op::Raise
            | Op::FuncInfo
            | Op::ErrorHandler
            | Op::ProcessExit
            | Op::Hibernate
            | Op::Hibernated
            | Op::Wait
            | Op::WaitTimeout
            | Op::LoopRecEnd
            | Op::Apply
            | Op::ApplyLast
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
                self.a.load(d, at(p, 8 - TAG_LIST as i32));
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
                let other = self.step_aside();
                self.if_not_small(r, other);
                self.cmp_word(r, a[2].n());
                self.a.jcc(Cond::L, to);
                self.cmp_word(r, a[3].n());
                self.a.jcc(Cond::G, to);
            }
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
                self.cmp_mem_word(boxed(r, 1), a[3].n());
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
            Op::FastMapGet => self.fast_map_get(i),
            Op::FastCompare => self.fast_compare(i),
            // Exceptions.
            Op::Catch => {
                let to = a[1].label().unwrap_or(i.at);
                // As a catch mark is made: the address above six bits of the tag.
                let w = self.pc(to) << 6 | 0x1B;
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
            // Floats.
            Op::FLoad | Op::FConv => self.fload(i),
            Op::FStore => {
                let fr = self.fr(a[0]);
                self.a.load(RCX, fr);
                self.store_word_by(at(HP, 0), header(Subtag::Float, 1), R10);
                self.a.store(at(HP, 8), RCX);
                self.made(a[1], TAG_BOXED, 2);
            }
            Op::FMove => {
                let (s, d) = (self.fr(a[0]), self.fr(a[1]));
                self.a.load(RCX, s);
                self.a.store(d, RCX);
            }
            Op::FAdd => self.float(i, Sse::Add),
            Op::FSub => self.float(i, Sse::Sub),
            Op::FMul => self.float(i, Sse::Mul),
            Op::FDiv => self.float(i, Sse::Div),
            // Bit strings.
            Op::BsContext => {
                let r = self.get(a[1], R10);
                let other = self.step_aside();
                self.if_not_kind(r, Subtag::MatchContext, other);
            }
            Op::BsStartMatch if a[4].n() == 0 => {
                let r = self.get(a[1], R10);
                let other = self.step_aside();
                self.if_not_kind(r, Subtag::MatchContext, other);
                self.put(a[2], r);
            }
            Op::BsGetPosition => {
                let c = self.get(a[0], R10);
                self.a.load(RCX, boxed(c, CTX_POS));
                self.a.shift_i(Q, Shl, RCX, 4);
                self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                self.put(a[1], RCX);
            }
            Op::BsSetPosition => {
                let c = self.get(a[0], R10);
                let p = self.get(a[1], R11);
                let after = self.a.label();
                self.a.mov(RCX, p);
                self.a.shift_i(Q, Sar, RCX, 4);
                self.a.alu_m(Q, Cmp, RCX, boxed(c, CTX_END));
                self.a.jcc(Cond::A, after);
                self.a.store(boxed(c, CTX_POS), RCX);
                self.a.bind(after);
            }
            Op::BsGetByte => self.get_byte(i),
            Op::BsGetSmall => self.get_small(i),
            Op::BsSkipFixed => {
                let c = self.get(a[1], R10);
                let to = self.to(a[0]);
                let n = a[2].n();
                self.a.load(R11, boxed(c, CTX_POS));
                self.add_word(R11, n);
                self.a.alu_m(Q, Cmp, R11, boxed(c, CTX_END));
                self.a.jcc(Cond::A, to);
                self.a.store(boxed(c, CTX_POS), R11);
            }
            Op::BsTestTail => {
                let c = self.get(a[1], R10);
                let to = self.to(a[0]);
                self.a.load(R11, boxed(c, CTX_END));
                self.a.alu_m(Q, Sub, R11, boxed(c, CTX_POS));
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
                self.a.load(R11, boxed(c, CTX_END));
                self.a.alu_m(Q, Sub, R11, boxed(c, CTX_POS));
                self.a.test32_i(R11, a[2].n() as u32 - 1);
                self.a.jcc(Cond::Ne, to);
            }
            Op::BsGetUtf | Op::BsSkipUtf => self.get_utf(i),
            Op::BsMatch => self.bs_match(i),
            _ => self.step(i),
        }
    }

    /// The members of a list of sources or registers.
    fn sources(&self, i: &Instruction) -> Vec<Arg> {
        let (from, n) = (i.list.0 as usize, i.list.1 as usize);
        let words = self.f.code.get(from..from + n).unwrap_or_default();
        words.iter().map(|&w| source(w)).collect()
    }
    fn list(&self, i: &Instruction) -> &'a [u64] {
        let (from, n) = (i.list.0 as usize, i.list.1 as usize);
        self.f.code.get(from..from + n).unwrap_or_default()
    }
    /// A cold place that makes a step of the whole instruction and comes back behind its template.
    fn step_aside(&mut self) -> Label {
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
    /// The label behind the call of the native that a shortcut stands before.
    fn over(&self, i: &Instruction) -> Option<Label> {
        let next = decode_at(&self.f, i.next)?;
        self.label_at(next.next)
    }
    fn add_word(&mut self, r: Reg, n: u64) {
        match i32::try_from(n) {
            Ok(n) => self.a.alu_i(Q, Add, r, n),
            Err(_) => {
                self.a.mov_i(RCX, n);
                self.a.alu(Q, Add, r, RCX);
            }
        }
    }
    /// The object at the top of the heap is done: so many words.
    fn made(&mut self, dst: Arg, tag: u64, words: i32) {
        let d = self.dst(dst, RCX);
        self.a.lea(d, at(HP, tag as i32));
        self.put(dst, d);
        self.a.alu_i(Q, Add, HP, words * 8);
    }

    fn allocate(&mut self, frame: u64, heap: u64, live: u64, op: Op) {
        let n = frame + 1;
        self.room(n + heap, live);
        self.a.alu_i(Q, Sub, E, n as i32 * 8);
        self.a.store_i(at(E, 0), 0);
        if matches!(op, Op::AllocateZero | Op::AllocateHeapZero) {
            for k in 0..frame as u16 {
                self.a.store_i(y(k), NIL_WORD as i32);
            }
        }
    }

    /// A call of a fun of `n` arguments; `frame`: as the last thing, from a function with that frame.
    fn call_fun(&mut self, n: u64, fun: Arg, frame: Option<u64>) {
        if n as usize >= FUN_STUBS {
            let pc = self.pc(self.whole.at);
            self.leave_to(pc);
            if frame.is_none()
                && let Some(l) = self.label_at(self.whole.next)
            {
                let next = self.pc(self.whole.next);
                self.returns.push((next, l));
            }
            return;
        }
        let exit = self.exit();
        let r = self.get(fun, R10);
        self.a.mov(R10, r);
        self.if_not_kind(R10, Subtag::Fun, exit);
        // Arity in the low byte, and whether it is a function by name.
        self.a.load32(RCX, boxed(R10, 3));
        self.a.alu_i(D, And, RCX, 0x100FF);
        self.a.alu_i(D, Cmp, RCX, n as i32);
        self.a.jcc(Cond::Ne, exit);
        self.a.load(R11, boxed(R10, 1));
        // None while its module is purged, or when that has gone.
        let address = self.env.targets.fun_address;
        self.a.load(RCX, at(R11, address));
        self.a.test(Q, RCX, RCX);
        self.a.jcc(Cond::E, exit);
        self.a.load32(R11, at(RCX, -4));
        let stub = self.env.stubs.fun[n as usize];
        match frame {
            None => {
                let pc = self.pc(self.whole.next);
                self.store_word_by(at(E, 0), pc, R12);
                self.a.call_abs(stub);
                self.returned();
            }
            Some(frame) => {
                self.drop_frame(frame);
                self.a.jmp_abs(stub);
            }
        }
    }

    // Lists and tuples.

    fn get_list(&mut self, src: Arg, hd: Arg, tl: Arg) {
        let p = self.get(src, R10);
        let (h, t) = (-(TAG_LIST as i32), 8 - TAG_LIST as i32);
        let dh = self.dst(hd, R11);
        if dh == p {
            // The head goes where the cell stands: last.
            let dt = self.dst(tl, RCX);
            if dt == p {
                // Both: the tail is written after the head.
                self.a.load(dt, at(p, t));
                return;
            }
            self.a.load(dt, at(p, t));
            self.put(tl, dt);
            self.a.load(dh, at(p, h));
            return;
        }
        self.a.load(dh, at(p, h));
        let dt = self.dst(tl, RCX);
        self.a.load(dt, at(p, t));
        self.put(hd, dh);
        self.put(tl, dt);
    }
    fn element(&mut self, src: Arg, offset: u64, dst: Arg) {
        let p = self.get(src, R10);
        let d = self.dst(dst, RCX);
        self.a.load(d, at(p, offset as i32 - TAG_BOXED as i32));
        self.put(dst, d);
    }
    fn put_tuple(&mut self, elements: &[Arg], dst: Arg) {
        let n = elements.len();
        self.store_word_by(at(HP, 0), header(Subtag::Tuple, n), R10);
        for (k, &e) in elements.iter().enumerate() {
            self.store_arg(at(HP, (k as i32 + 1) * 8), e);
        }
        self.made(dst, TAG_BOXED, n as i32 + 1);
    }
    fn update_record(&mut self, i: &Instruction) {
        let a = i.args();
        let size = a[2].n() as usize;
        if size > 32 {
            return self.step(i);
        }
        let list = self.list(i);
        let r = self.get(a[0], R10);
        // Only RCX is used for the words, and R11 for large ones.
        for k in 0..=size {
            let m = at(HP, k as i32 * 8);
            // The last of several values of an element counts.
            match list.chunks(2).rev().find(|u| u[0] as usize == k) {
                Some(u) => self.store_arg(m, source(u[1])),
                None => {
                    self.a.load(RCX, boxed(r, k as i32));
                    self.a.store(m, RCX);
                }
            }
        }
        self.made(a[1], TAG_BOXED, size as i32 + 1);
    }

    // Comparisons.

    /// R10 and RCX: the operands of a helper.
    fn operands(&mut self, (a, ra): (Arg, Reg), (b, rb): (Arg, Reg)) {
        match b {
            Arg::C(w) => self.a.mov_i(RCX, w),
            _ => self.a.mov(RCX, rb),
        }
        match a {
            Arg::C(w) => self.a.mov_i(R10, w),
            _ => self.a.mov(R10, ra),
        }
    }
    /// The machine register of an operand; of a constant none, which stands for it.
    fn get_or_constant(&mut self, a: Arg, scratch: Reg) -> (Arg, Reg) {
        match a {
            Arg::C(_) => (a, scratch),
            _ => (a, self.get(a, scratch)),
        }
    }
    /// Compares two small integers, or any words: sets the flags of `a` against `b`, or the other way round if the result says so.
    fn cmp_args(&mut self, (a, ra): (Arg, Reg), (b, rb): (Arg, Reg)) -> bool {
        match (a, b) {
            (Arg::C(w), Arg::C(_)) => {
                self.a.mov_i(ra, w);
                self.cmp_word(ra, b.n());
                false
            }
            (_, Arg::C(w)) => {
                self.cmp_word(ra, w);
                false
            }
            (Arg::C(w), _) => match i32::try_from(w as i64) {
                Ok(v) => {
                    self.a.alu_i(Q, Cmp, rb, v);
                    true
                }
                Err(_) => {
                    self.a.mov_i(ra, w);
                    self.a.alu(Q, Cmp, ra, rb);
                    false
                }
            },
            _ => {
                self.a.alu(Q, Cmp, ra, rb);
                false
            }
        }
    }
    fn less(&mut self, fail: Arg, a: Arg, b: Arg, less: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
        let constant = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        let helper = self.env.helpers.less;
        let general = move |g: &mut Self, next: Option<Label>| {
            g.operands(pa, pb);
            g.pure_helper(helper);
            g.a.test8_i(RCX, 1);
            g.a.jcc(if less { Cond::E } else { Cond::Ne }, to);
            if let Some(n) = next {
                g.a.jmp(n);
            }
        };
        if constant(a) || constant(b) {
            return general(self, None);
        }
        let (cold, next) = (self.a.label(), self.a.label());
        self.if_not_smalls(pa, pb, cold);
        let turned = self.cmp_args(pa, pb);
        // Where it does not hold.
        let c = match (less, turned) {
            (true, false) => Cond::Ge,
            (false, false) => Cond::L,
            (true, true) => Cond::Le,
            (false, true) => Cond::G,
        };
        self.a.jcc(c, to);
        self.a.bind(next);
        self.later(move |g| {
            g.a.bind(cold);
            general(g, Some(next));
        });
    }
    /// `==` and `/=`, or where `exact` `=:=` and `=/=`.
    fn equal(&mut self, fail: Arg, a: Arg, b: Arg, exact: bool, wanted: bool) {
        let to = self.to(fail);
        let (pa, pb) = (self.get_or_constant(a, R10), self.get_or_constant(b, R12));
        let (cold, next) = (self.a.label(), self.a.label());
        let (is, is_not) = if wanted { (next, to) } else { (to, next) };
        self.cmp_args(pa, pb);
        self.a.jcc(Cond::E, is);
        match exact {
            // An immediate equals nothing but itself.
            true => {
                for (arg, r) in [pa, pb] {
                    match arg {
                        Arg::C(w) if is_immediate(w) => self.a.jmp(is_not),
                        Arg::C(_) => {}
                        _ => self.if_immediate(r, is_not),
                    }
                }
            }
            // Two immediates.
            false => match (a, b) {
                (Arg::C(v), Arg::C(w)) if is_immediate(v) && is_immediate(w) => self.a.jmp(is_not),
                (Arg::C(_), Arg::C(_)) => {}
                (Arg::C(w), _) if is_immediate(w) => self.if_immediate(pb.1, is_not),
                (_, Arg::C(w)) if is_immediate(w) => self.if_immediate(pa.1, is_not),
                (Arg::C(_), _) | (_, Arg::C(_)) => {}
                _ => {
                    self.a.mov32(RCX, pa.1);
                    self.a.alu(D, And, RCX, pb.1);
                    self.a.invert(RCX);
                    self.a.test8_i(RCX, 3);
                    self.a.jcc(Cond::E, is_not);
                }
            },
        }
        self.a.jmp(cold);
        self.a.bind(next);
        let helper = match exact {
            true => self.env.helpers.same,
            false => self.env.helpers.equal,
        };
        self.later(move |g| {
            g.a.bind(cold);
            g.operands(pa, pb);
            g.pure_helper(helper);
            g.a.test8_i(RCX, 1);
            g.a.jcc(if wanted { Cond::E } else { Cond::Ne }, to);
            g.a.jmp(next);
        });
    }

    // Types.

    fn test_type(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[1], R10);
        let to = self.to(a[0]);
        let is = self.a.label();
        match i.op {
            Op::IsList => {
                self.cmp_word(r, NIL_WORD);
                self.a.jcc(Cond::E, is);
                self.if_not_cons(r, to);
            }
            Op::IsNonemptyList => self.if_not_cons(r, to),
            Op::IsTuple => self.if_not_tuple(r, to),
            Op::IsMap => self.if_not_kind(r, Subtag::Map, to),
            Op::IsFloat => self.if_not_kind(r, Subtag::Float, to),
            Op::IsFunction => self.if_not_kind(r, Subtag::Fun, to),
            Op::IsAtom => {
                self.a.mov32(RCX, r);
                self.a.alu_i(D, And, RCX, 0x3F);
                self.a.alu_i(D, Cmp, RCX, TAG_ATOM as i32);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsBoolean => {
                let (t, f) = (self.env.true_word, self.env.false_word);
                self.cmp_word(r, t);
                self.a.jcc(Cond::E, is);
                self.cmp_word(r, f);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsInteger | Op::IsNumber => {
                self.a.lea(RCX, at(r, 1));
                self.a.test8_i(RCX, 15);
                self.a.jcc(Cond::E, is);
                self.if_not_boxed(r, to);
                self.a.load32(RCX, boxed(r, 0));
                // Both signs of large integers but for one bit.
                self.a.alu_i(D, And, RCX, i32::from(HEADER_MASK));
                if i.op == Op::IsNumber {
                    self.a.alu_i(D, Cmp, RCX, (Subtag::Float as i32) << 2);
                    self.a.jcc(Cond::E, is);
                }
                self.a.alu_i(D, And, RCX, 0x3B);
                self.a.alu_i(D, Cmp, RCX, (Subtag::PosBig as i32) << 2);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsPid | Op::IsPort => {
                let (tag, s) = match i.op {
                    Op::IsPid => (3, Subtag::ExtPid),
                    _ => (7, Subtag::ExtPort),
                };
                self.a.mov32(RCX, r);
                self.a.alu_i(D, And, RCX, 15);
                self.a.alu_i(D, Cmp, RCX, tag);
                self.a.jcc(Cond::E, is);
                self.if_not_kind(r, s, to);
            }
            Op::IsReference => {
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::Ref);
                self.a.jcc(Cond::E, is);
                self.a.alu_i(D, Cmp, RCX, (Subtag::ExtRef as i32) << 2);
                self.a.jcc(Cond::Ne, to);
            }
            Op::IsBitstr => {
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::MatchContext);
                self.a.jcc(Cond::E, is);
                for (s, last) in [
                    (Subtag::HeapBin, false),
                    (Subtag::RefcBin, false),
                    (Subtag::SubBin, true),
                ] {
                    self.a.alu_i(D, Cmp, RCX, (s as i32) << 2);
                    match last {
                        false => self.a.jcc(Cond::E, is),
                        true => self.a.jcc(Cond::Ne, to),
                    }
                }
            }
            _ => {
                // A part of another may end within a byte: looked at by the handler.
                let part = self.step_aside();
                self.if_not_boxed(r, to);
                self.cmp_subtag(r, Subtag::HeapBin);
                self.a.jcc(Cond::E, is);
                self.a.alu_i(D, Cmp, RCX, (Subtag::RefcBin as i32) << 2);
                self.a.jcc(Cond::E, is);
                self.a.alu_i(D, Cmp, RCX, (Subtag::SubBin as i32) << 2);
                self.a.jcc(Cond::E, part);
                self.a.jmp(to);
            }
        }
        self.a.bind(is);
    }

    // Selections.

    fn select_val(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        let list = self.list(i);
        let n = list.len() / 2;
        let mut arms = Vec::with_capacity(n);
        for k in 0..n {
            let label = (list[n + k] as i64 as i32).checked_add_unsigned(i.at);
            arms.push((list[k], self.place(label.unwrap_or(0) as u32)));
        }
        self.search(r, &arms, to);
    }
    /// Compares with sorted words, in halves where there are many.
    fn search(&mut self, r: Reg, arms: &[(u64, Label)], other: Label) {
        if arms.len() <= IN_A_ROW {
            for &(w, l) in arms {
                self.cmp_word(r, w);
                self.a.jcc(Cond::E, l);
            }
            return self.a.jmp(other);
        }
        let mid = arms.len() / 2;
        let upper = self.a.label();
        self.cmp_word(r, arms[mid].0);
        self.a.jcc(Cond::Ae, upper);
        self.search(r, &arms[..mid], other);
        self.a.bind(upper);
        self.search(r, &arms[mid..], other);
    }
    fn select_arity(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        self.if_not_boxed(r, to);
        self.a.load(RCX, boxed(r, 0));
        for arm in self.list(i).chunks(2) {
            let label = (arm[1] as i64 as i32).checked_add_unsigned(i.at);
            let l = self.place(label.unwrap_or(0) as u32);
            self.cmp_word(RCX, arm[0]);
            self.a.jcc(Cond::E, l);
        }
        self.a.jmp(to);
    }
    fn jump_table(&mut self, i: &Instruction) {
        let a = i.args();
        let r = self.get(a[0], R10);
        let to = self.to(a[1]);
        let list = self.list(i);
        self.if_not_small(r, to);
        self.a.mov(RCX, r);
        self.a.shift_i(Q, Sar, RCX, 4);
        let first = a[2].n();
        match i32::try_from(first as i64) {
            Ok(0) => {}
            Ok(v) => self.a.alu_i(Q, Sub, RCX, v),
            Err(_) => {
                self.a.mov_i(R11, first);
                self.a.alu(Q, Sub, RCX, R11);
            }
        }
        self.a.alu_i(Q, Cmp, RCX, list.len() as i32);
        self.a.jcc(Cond::Ae, to);
        let table = self.a.label();
        self.a.lea_label(R11, table);
        self.a.jmp_m(indexed(R11, RCX, 8, 0));
        let labels: Vec<Label> = list
            .iter()
            .map(|&w| match w as i64 as i32 {
                0 => to,
                n => self.place(i.at.wrapping_add_signed(n)),
            })
            .collect();
        self.later(move |g| {
            g.a.align(8);
            g.a.bind(table);
            for l in labels {
                g.a.address_of(l);
            }
        });
    }

    // Arithmetic.

    /// The general case of an operation, as a cold place: `n` is its number. It comes back with the result written.
    fn arith_aside(&mut self, i: &Instruction, pa: (Arg, Reg), pb: (Arg, Reg), n: u64) -> Label {
        let (cold, next) = (self.a.label(), self.a.label());
        let a = i.args();
        let (fail, dst, live) = (a[0], a[3], a[4].n());
        let failed = self.to(fail);
        let pc = self.pc(self.whole.at);
        let (bif_pc, helper) = (self.env.fields.bif_pc, self.env.helpers.arith);
        let none = self.env.no_value;
        self.pending = Some(next);
        self.later(move |g| {
            g.a.bind(cold);
            g.a.mov_i(R11, pc);
            g.a.store(at(CX, bif_pc), R11);
            g.operands(pa, pb);
            g.a.mov_i(R12, n | live << 8);
            g.helper(helper);
            g.cmp_word(RCX, none);
            g.a.jcc(Cond::E, failed);
            g.put(dst, RCX);
            g.a.jmp(next);
        });
        cold
    }
    /// The end of a template with an `arith_aside`.
    fn rejoin(&mut self) {
        if let Some(l) = self.pending.take() {
            self.a.bind(l);
        }
    }
    fn arith_operands(&mut self, i: &Instruction) -> ((Arg, Reg), (Arg, Reg)) {
        let a = i.args();
        (
            self.get_or_constant(a[1], R10),
            self.get_or_constant(a[2], R12),
        )
    }
    /// Whether an operand is a constant that is no small integer, or both are constants: left to the general case.
    fn is_odd(a: Arg, b: Arg) -> bool {
        let odd = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        odd(a) || odd(b) || matches!((a, b), (Arg::C(_), Arg::C(_)))
    }
    fn add_sub(&mut self, i: &Instruction) {
        let a = i.args();
        let sub = i.op == Op::Sub;
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, u64::from(sub));
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        match (a[1], a[2]) {
            (_, Arg::C(w)) => {
                let d = w.wrapping_sub(TAG_SMALL);
                self.a.mov(RCX, pa.1);
                match i32::try_from(d as i64) {
                    Ok(v) => self.a.alu_i(Q, if sub { Sub } else { Add }, RCX, v),
                    Err(_) => {
                        self.a.mov_i(R11, d);
                        self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
                    }
                }
            }
            (Arg::C(w), _) => {
                self.a.mov_i(RCX, w);
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
            }
            _ => {
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.mov(RCX, pa.1);
                self.a.alu(Q, if sub { Sub } else { Add }, RCX, R11);
            }
        }
        self.a.jcc(Cond::O, cold);
        self.put(a[3], RCX);
        self.rejoin();
    }
    fn mul(&mut self, i: &Instruction) {
        let a = i.args();
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, 2);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // One factor without its tag, the other with zeros in its place.
        let (v, c) = match (a[1], a[2]) {
            (Arg::C(w), _) => (pb, Some(w)),
            (_, Arg::C(w)) => (pa, Some(w)),
            _ => (pa, None),
        };
        self.a.mov(RCX, v.1);
        match c.map(|w| i32::try_from((w as i64) >> 4)) {
            Some(Ok(k)) => {
                self.a.alu_i(Q, And, RCX, -16);
                self.a.imul_i(RCX, RCX, k);
            }
            Some(Err(_)) => {
                self.a.alu_i(Q, And, RCX, -16);
                self.a.mov_i(R11, ((c.unwrap_or(0) as i64) >> 4) as u64);
                self.a.imul(RCX, R11);
            }
            None => {
                self.a.shift_i(Q, Sar, RCX, 4);
                self.a.lea(R11, at(pb.1, -(TAG_SMALL as i32)));
                self.a.imul(RCX, R11);
            }
        }
        self.a.jcc(Cond::O, cold);
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(a[3], RCX);
        self.rejoin();
    }
    fn div_rem(&mut self, i: &Instruction) {
        let a = i.args();
        let n = if i.op == Op::IntDiv { 3 } else { 4 };
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, n);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        // A power of two, where nothing is divided that is negative, takes no division.
        if let Arg::C(w) = a[2]
            && (w as i64) >> 4 > 0
            && (((w as i64) >> 4) as u64).is_power_of_two()
        {
            let k = (((w as i64) >> 4) as u64).trailing_zeros();
            let (negative, done) = (self.a.label(), self.a.label());
            self.a.test(Q, pa.1, pa.1);
            self.a.jcc(Cond::S, negative);
            self.a.mov(RCX, pa.1);
            if n == 3 {
                self.a.shift_i(Q, Shr, RCX, k as u8);
                self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
                self.put(a[3], RCX);
            } else if k < 27 {
                self.a.alu_i(Q, And, RCX, ((1i64 << (k + 4)) - 1) as i32);
                self.put(a[3], RCX);
            } else {
                self.a.mov_i(R11, (1u64 << (k + 4)) - 1);
                self.a.alu(Q, And, RCX, R11);
                self.put(a[3], RCX);
            }
            self.a.bind(done);
            let i = *i;
            self.later(move |g| {
                g.a.bind(negative);
                g.divide(&i, pa, pb, n, cold);
                g.a.jmp(done);
            });
            return self.rejoin();
        }
        self.divide(i, pa, pb, n, cold);
        self.rejoin();
    }
    /// Divides what is known to be small: X0 and X1 are out of their registers meanwhile.
    fn divide(&mut self, i: &Instruction, pa: (Arg, Reg), pb: (Arg, Reg), n: u64, cold: Label) {
        let dst = i.args()[3];
        match pb.0 {
            Arg::C(w) => self.a.mov_i(RCX, ((w as i64) >> 4) as u64),
            _ => {
                self.a.mov(RCX, pb.1);
                self.a.shift_i(Q, Sar, RCX, 4);
                self.a.jcc(Cond::E, cold);
            }
        }
        let minus_one = match pb.0 {
            Arg::C(w) => (w as i64) >> 4 == -1 || (w as i64) >> 4 == 0,
            _ => {
                if n == 3 {
                    // The least small integer by -1 is none.
                    self.a.alu_i(Q, Cmp, RCX, -1);
                    self.a.jcc(Cond::E, cold);
                }
                false
            }
        };
        if minus_one {
            return self.a.jmp(cold);
        }
        match pa.0 {
            Arg::C(w) => self.a.mov_i(R11, w),
            _ => self.a.mov(R11, pa.1),
        }
        self.a.store(x(0), RAX);
        self.a.store(x(1), RDX);
        self.a.mov(RAX, R11);
        self.a.shift_i(Q, Sar, RAX, 4);
        self.a.cqo();
        self.a.idiv(RCX);
        self.a.mov(RCX, if n == 3 { RAX } else { RDX });
        self.a.load(RAX, x(0));
        self.a.load(RDX, x(1));
        self.a.shift_i(Q, Shl, RCX, 4);
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(dst, RCX);
    }
    fn bitwise(&mut self, i: &Instruction) {
        let a = i.args();
        let (op, n) = match i.op {
            Op::Band => (And, 5),
            Op::Bor => (Or, 6),
            _ => (Xor, 7),
        };
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, n);
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let (v, c) = match (a[1], a[2]) {
            (Arg::C(w), _) => (pb.1, Some(w)),
            (_, Arg::C(w)) => (pa.1, Some(w)),
            _ => (pa.1, None),
        };
        self.a.mov(RCX, v);
        match c {
            Some(w) => match i32::try_from(w as i64) {
                Ok(k) => self.a.alu_i(Q, op, RCX, k),
                Err(_) => {
                    self.a.mov_i(R11, w);
                    self.a.alu(Q, op, RCX, R11);
                }
            },
            None => self.a.alu(Q, op, RCX, pb.1),
        }
        if op == Xor {
            self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        }
        self.put(a[3], RCX);
        self.rejoin();
    }
    fn shift(&mut self, i: &Instruction) {
        let a = i.args();
        let left = i.op == Op::Bsl;
        let (pa, pb) = self.arith_operands(i);
        let cold = self.arith_aside(i, pa, pb, if left { 8 } else { 9 });
        if Self::is_odd(a[1], a[2]) {
            self.a.jmp(cold);
            return self.rejoin();
        }
        self.if_not_smalls(pa, pb, cold);
        let most = if left { 60 } else { 64 };
        match pb.0 {
            Arg::C(w) => {
                let k = (w as i64) >> 4;
                if !(0..most).contains(&k) {
                    self.a.jmp(cold);
                    return self.rejoin();
                }
                self.a.mov_i(RCX, k as u64);
            }
            _ => {
                self.a.mov(RCX, pb.1);
                self.a.shift_i(Q, Sar, RCX, 4);
                self.a.alu_i(Q, Cmp, RCX, most as i32);
                self.a.jcc(Cond::Ae, cold);
            }
        }
        match pa.0 {
            Arg::C(w) => self.a.mov_i(R11, w),
            _ => self.a.mov(R11, pa.1),
        }
        if left {
            self.a.alu_i(Q, And, R11, -16);
            // What comes back from a shift the other way must be the same.
            self.a.shift_cl(Q, Shl, R11);
            self.a.push(R11);
            self.a.shift_cl(Q, Sar, R11);
            match pa.0 {
                Arg::C(w) => self.a.mov_i(RCX, w & !15),
                _ => {
                    self.a.mov(RCX, pa.1);
                    self.a.alu_i(Q, And, RCX, -16);
                }
            }
            self.a.alu(Q, Cmp, R11, RCX);
            self.a.pop(RCX);
            self.a.jcc(Cond::Ne, cold);
        } else {
            self.a.shift_cl(Q, Sar, R11);
            self.a.mov(RCX, R11);
        }
        self.a.alu_i(Q, Or, RCX, TAG_SMALL as i32);
        self.put(a[3], RCX);
        self.rejoin();
    }

    // Shortcuts.

    fn fast_element(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let r = self.get(a[0], R10);
        self.if_not_tuple(r, next);
        // The arity stands above six bits of the header; an element's offset in bytes is eight times its number.
        self.cmp_mem_word(boxed(r, 0), a[1].n() << 3);
        self.a.jcc(Cond::B, next);
        self.element(a[0], a[1].n(), a[2]);
        self.a.jmp(over);
    }
    fn fast_element_of(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let t = self.get(a[0], R10);
        let k = self.get(a[1], R12);
        self.if_not_small(k, next);
        self.if_not_tuple(t, next);
        self.a.load(R11, boxed(t, 0));
        self.a.shift_i(Q, Shr, R11, 6);
        self.a.mov(RCX, k);
        self.a.shift_i(Q, Sar, RCX, 4);
        self.a.dec(RCX);
        // Numbers below 1 are large ones without a sign.
        self.a.alu(Q, Cmp, RCX, R11);
        self.a.jcc(Cond::Ae, next);
        self.a.load(RCX, indexed(t, RCX, 8, 8 - TAG_BOXED as i32));
        self.put(a[2], RCX);
        self.a.jmp(over);
    }
    fn fast_compare(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        // "=:=", "=/=", "==", "/=", "<", ">=", ">", "=<"
        let n = a[3].n() & 7;
        let (pa, pb) = (
            self.get_or_constant(a[0], R10),
            self.get_or_constant(a[1], R12),
        );
        let (t, f) = (self.env.true_word, self.env.false_word);
        let odd = |x: Arg| matches!(x, Arg::C(w) if !is_small_word(w));
        if matches!((a[0], a[1]), (Arg::C(_), Arg::C(_))) || n >= 4 && (odd(a[0]) || odd(a[1])) {
            return self.step(i);
        }
        let mut c = match n {
            0 | 2 => Cond::E,
            1 | 3 => Cond::Ne,
            4 => Cond::L,
            5 => Cond::Ge,
            6 => Cond::G,
            _ => Cond::Le,
        };
        if n < 4 {
            // Different words tell only if one of them, or for `==` both, are immediate. A word that is no pointer.
            let known = self.a.label();
            self.cmp_args(pa, pb);
            self.a.jcc(Cond::E, known);
            match (a[0], a[1]) {
                (Arg::C(w), _) if is_immediate(w) => {
                    if n >= 2 {
                        self.if_pointer(pb.1, next);
                    }
                }
                (_, Arg::C(w)) if is_immediate(w) => {
                    if n >= 2 {
                        self.if_pointer(pa.1, next);
                    }
                }
                (Arg::C(_), _) => match n {
                    0 | 1 => self.if_pointer(pb.1, next),
                    _ => self.a.jmp(next),
                },
                (_, Arg::C(_)) => match n {
                    0 | 1 => self.if_pointer(pa.1, next),
                    _ => self.a.jmp(next),
                },
                _ => {
                    if n >= 2 {
                        self.if_pointer(pa.1, next);
                        self.if_pointer(pb.1, next);
                    } else {
                        self.if_immediate(pa.1, known);
                        self.if_pointer(pb.1, next);
                    }
                }
            }
            self.a.bind(known);
            // The flags anew: the tests have used them.
            self.cmp_args(pa, pb);
        } else {
            self.if_not_smalls(pa, pb, next);
            if self.cmp_args(pa, pb) {
                c = match c {
                    Cond::L => Cond::G,
                    Cond::Ge => Cond::Le,
                    Cond::G => Cond::L,
                    _ => Cond::Ge,
                };
            }
        }
        self.a.mov_i(RCX, t);
        self.a.mov_i(R11, f);
        self.a.cmov(c.negated(), RCX, R11);
        self.put(a[2], RCX);
        self.a.jmp(over);
    }
    fn fast_map_get(&mut self, i: &Instruction) {
        let a = i.args();
        let (Some(over), Some(next)) = (self.over(i), self.label_at(i.next)) else {
            return self.step(i);
        };
        let (pm, pk) = (
            self.get_or_constant(a[0], R10),
            self.get_or_constant(a[1], R12),
        );
        if let Arg::C(w) = a[1]
            && is_immediate(w)
        {
            let general = self.a.label();
            let m = self.get(a[0], R10);
            self.a.mov(R12, m);
            self.flat_map(R12, general);
            self.find_key(w, general);
            self.a.load(RCX, indexed(R12, RCX, 8, VALUES_BEFORE));
            self.put(a[2], RCX);
            self.a.jmp(over);
            self.a.bind(general);
        }
        let pm = match a[0] {
            Arg::C(_) => pm,
            _ => (a[0], self.get(a[0], R10)),
        };
        let pk = match a[1] {
            Arg::C(_) => pk,
            _ => (a[1], self.get(a[1], R12)),
        };
        self.operands(pm, pk);
        let (f, none) = (self.env.helpers.map_get, self.env.no_value);
        self.pure_helper(f);
        self.cmp_word(RCX, none);
        self.a.jcc(Cond::E, next);
        self.put(a[2], RCX);
        self.a.jmp(over);
    }

    // Maps.

    /// Jumps where a term is no small map. RCX: how many keys it has, R11 the tuple of them.
    fn flat_map(&mut self, m: Reg, to: Label) {
        self.if_not_boxed(m, to);
        self.a.load32(RCX, boxed(m, 0));
        // The kind stands above the mark: 0 for a flat one.
        self.a.alu_i(D, And, RCX, 0xFF);
        self.a.alu_i(D, Cmp, RCX, (Subtag::Map as i32) << 2);
        self.a.jcc(Cond::Ne, to);
        self.a.load(RCX, boxed(m, 1));
        self.a.load(R11, boxed(m, 2));
    }
    /// RCX: the place of the key among the keys in R11, from 1 on; R10 is used. Jumps where it isn't among them.
    fn find_key(&mut self, key: u64, to: Label) {
        let found = self.a.label();
        let wide = i32::try_from(key as i64).is_err();
        if wide {
            self.a.mov_i(R10, key);
        }
        self.a.test(D, RCX, RCX);
        self.a.jcc(Cond::E, to);
        let again = self.a.here_label();
        let m = indexed(R11, RCX, 8, -(TAG_BOXED as i32));
        match wide {
            true => self.a.alu_m(Q, Cmp, R10, m),
            false => self.a.alu_mi(Q, Cmp, m, key as i32),
        }
        self.a.jcc(Cond::E, found);
        self.a.dec(RCX);
        self.a.jcc(Cond::Ne, again);
        self.a.jmp(to);
        self.a.bind(found);
    }
    fn get_map_elements(&mut self, i: &Instruction) {
        let a = i.args();
        let list = self.list(i);
        let plain = list.chunks(2).all(|p| is_immediate(p[0]));
        if !plain || list.len() > 2 * MAP_KEYS_MOST || matches!(a[1], Arg::C(_)) {
            return self.step(i);
        }
        let to = self.to(a[0]);
        let other = self.step_aside();
        let m = self.get(a[1], R12);
        self.a.mov(R12, m);
        for (k, pair) in list.chunks(2).enumerate() {
            if k == 0 {
                self.flat_map(R12, other);
            } else {
                self.a.load(RCX, boxed(R12, 1));
                self.a.load(R11, boxed(R12, 2));
            }
            self.find_key(pair[0], to);
            let dst = source(pair[1]);
            let d = self.dst(dst, RCX);
            self.a.load(d, indexed(R12, RCX, 8, VALUES_BEFORE));
            self.put(dst, d);
        }
    }

    // Floats.

    fn fr(&self, a: Arg) -> Mem {
        at(CX, self.env.fields.fr + a.n() as i32)
    }
    fn fload(&mut self, i: &Instruction) {
        let a = i.args();
        let dst = self.fr(a[1]);
        let other = self.step_aside();
        let r = self.get(a[0], R10);
        let (integer, done) = (self.a.label(), self.a.label());
        self.if_not_boxed(r, integer);
        self.cmp_subtag(r, Subtag::Float);
        self.a.jcc(Cond::Ne, other);
        self.a.load(RCX, boxed(r, 1));
        self.a.store(dst, RCX);
        self.a.bind(done);
        self.later(move |g| {
            g.a.bind(integer);
            g.if_not_small(r, other);
            g.a.mov(RCX, r);
            g.a.shift_i(Q, Sar, RCX, 4);
            g.a.cvtsi2sd(Xmm(0), RCX);
            g.a.movsd_store(dst, Xmm(0));
            g.a.jmp(done);
        });
    }
    fn float(&mut self, i: &Instruction, op: Sse) {
        let a = i.args();
        let (p, q, d) = (self.fr(a[0]), self.fr(a[1]), self.fr(a[2]));
        let exit = self.exit();
        self.a.movsd_load(Xmm(0), p);
        self.a.sse_op_m(op, Xmm(0), q);
        // All bits of the exponent: infinite, or no number.
        self.a.movq_from(RCX, Xmm(0));
        self.a.shift_i(Q, Shr, RCX, 52);
        self.a.invert(RCX);
        self.a.test32_i(RCX, 0x7FF);
        self.a.jcc(Cond::E, exit);
        self.a.movsd_store(d, Xmm(0));
    }

    // Bit strings.

    fn get_byte(&mut self, i: &Instruction) {
        let a = i.args();
        let c = self.get(a[1], R10);
        let to = self.to(a[0]);
        self.a.load(R11, boxed(c, CTX_POS));
        self.a.lea(RCX, at(R11, 8));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, CTX_END));
        self.a.jcc(Cond::A, to);
        let (odd, done) = (self.a.label(), self.a.label());
        self.a.test8_i(R11, 7);
        self.a.jcc(Cond::Ne, odd);
        self.a.store(boxed(c, CTX_POS), RCX);
        self.a.shift_i(Q, Shr, R11, 3);
        self.a.load(RCX, boxed(c, CTX_BASE));
        self.a.load8(RCX, indexed(RCX, R11, 1, 0));
        self.a.bind(done);
        self.a.shift_i(D, Shl, RCX, 4);
        self.a.alu_i(D, Or, RCX, TAG_SMALL as i32);
        self.put(a[2], RCX);
        // Within a byte it takes the next one as well.
        self.later(move |g| {
            g.a.bind(odd);
            g.a.store(boxed(c, CTX_POS), RCX);
            g.a.mov(R12, R11);
            g.a.shift_i(Q, Shr, R12, 3);
            g.a.load(RCX, boxed(c, CTX_BASE));
            g.a.alu(Q, Add, R12, RCX);
            g.a.mov(RCX, R11);
            g.a.load8(R11, at(R12, 0));
            g.a.load8(R12, at(R12, 1));
            g.a.shift_i(D, Shl, R11, 8);
            g.a.alu(D, Or, R11, R12);
            g.a.alu_i(D, And, RCX, 7);
            g.a.shift_cl(D, Shl, R11);
            g.a.mov32(RCX, R11);
            g.a.shift_i(D, Shr, RCX, 8);
            g.a.alu_i(D, And, RCX, 0xFF);
            g.a.jmp(done);
        });
    }
    /// R11: the `bits` bits, at most 56, at bit R12 of the string of the context in `c`, as a number. Jumps where the eight
    /// bytes that hold them do not all belong to it. RCX is used.
    fn read_bits(&mut self, c: Reg, bits: u64, near_end: Label) {
        self.a.lea(RCX, at(R12, 64));
        self.a.alu_i(Q, And, RCX, -8);
        self.a.alu_m(Q, Cmp, RCX, boxed(c, CTX_END));
        self.a.jcc(Cond::A, near_end);
        self.a.mov(RCX, R12);
        self.a.shift_i(Q, Shr, RCX, 3);
        self.a.load(R11, boxed(c, CTX_BASE));
        self.a.load(R11, indexed(R11, RCX, 1, 0));
        self.a.bswap(Q, R11);
        self.a.mov32(RCX, R12);
        self.a.alu_i(D, And, RCX, 7);
        self.a.shift_cl(Q, Shl, R11);
        let _ = bits;
    }
    fn get_small(&mut self, i: &Instruction) {
        let a = i.args();
        let bits = a[2].n();
        if a[3].n() != 0 {
            return self.step(i);
        }
        let to = self.to(a[0]);
        let other = self.step_aside();
        let c = self.get(a[1], R10);
        self.a.load(R12, boxed(c, CTX_POS));
        self.a.lea(RCX, at(R12, bits as i32));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, CTX_END));
        self.a.jcc(Cond::A, to);
        self.read_bits(c, bits, other);
        self.a.alu_i(Q, Add, R12, bits as i32);
        self.a.store(boxed(c, CTX_POS), R12);
        self.a.shift_i(Q, Shr, R11, (64 - bits) as u8);
        self.a.shift_i(Q, Shl, R11, 4);
        self.a.alu_i(Q, Or, R11, TAG_SMALL as i32);
        self.put(a[4], R11);
    }
    /// A character of one byte; all others are a step.
    fn get_utf(&mut self, i: &Instruction) {
        let a = i.args();
        if a[2].n() != 8 {
            return self.step(i);
        }
        let other = self.step_aside();
        let c = self.get(a[1], R10);
        self.a.load(R11, boxed(c, CTX_POS));
        self.a.test8_i(R11, 7);
        self.a.jcc(Cond::Ne, other);
        self.a.lea(RCX, at(R11, 8));
        self.a.alu_m(Q, Cmp, RCX, boxed(c, CTX_END));
        self.a.jcc(Cond::A, other);
        self.a.mov(R12, RCX);
        self.a.shift_i(Q, Shr, R11, 3);
        self.a.load(RCX, boxed(c, CTX_BASE));
        self.a.load8(RCX, indexed(RCX, R11, 1, 0));
        self.a.test8_i(RCX, 0x80);
        self.a.jcc(Cond::Ne, other);
        self.a.store(boxed(c, CTX_POS), R12);
        if i.op == Op::BsGetUtf {
            self.a.shift_i(D, Shl, RCX, 4);
            self.a.alu_i(D, Or, RCX, TAG_SMALL as i32);
            self.put(a[4], RCX);
        }
    }
    /// Commands that make no term but small integers; an op with others is a step.
    fn bs_match(&mut self, i: &Instruction) {
        let a = i.args();
        let list = self.list(i);
        let Some(commands) = Command::all(list) else {
            return self.step(i);
        };
        let context = a[1];
        let clash = commands
            .iter()
            .any(|c| matches!(c, Command::Integer(_, d) if *d == context));
        if clash || matches!(context, Arg::C(_)) {
            return self.step(i);
        }
        let to = self.to(a[0]);
        let other = self.step_aside();
        let c = self.get(context, R10);
        // R12 is the position; it is written when all has matched.
        self.a.load(R12, boxed(c, CTX_POS));
        // Bits that are known to be left.
        let mut sure = 0;
        for command in commands {
            match command {
                Command::AtLeast(bits, unit) => {
                    self.a.load(R11, boxed(c, CTX_END));
                    self.a.alu(Q, Sub, R11, R12);
                    self.a.alu_i(Q, Sub, R11, bits as i32);
                    self.a.jcc(Cond::B, to);
                    if unit > 1 {
                        self.a.test32_i(R11, unit as u32 - 1);
                        self.a.jcc(Cond::Ne, to);
                    }
                    sure = bits;
                }
                Command::Exactly(bits) => {
                    self.a.lea(R11, at(R12, bits as i32));
                    self.a.alu_m(Q, Cmp, R11, boxed(c, CTX_END));
                    self.a.jcc(Cond::Ne, to);
                    sure = bits;
                }
                Command::Integer(bits, dst) => {
                    self.enough(c, bits, &mut sure, to);
                    self.read_bits(c, bits, other);
                    self.a.shift_i(Q, Shr, R11, (64 - bits) as u8);
                    self.a.shift_i(Q, Shl, R11, 4);
                    self.a.alu_i(Q, Or, R11, TAG_SMALL as i32);
                    self.put(dst, R11);
                    self.a.alu_i(Q, Add, R12, bits as i32);
                }
                Command::Skip(bits) => {
                    self.enough(c, bits, &mut sure, to);
                    self.a.alu_i(Q, Add, R12, bits as i32);
                }
                Command::Equals(bits, value) => {
                    self.enough(c, bits, &mut sure, to);
                    self.read_bits(c, bits, other);
                    self.a.shift_i(Q, Shr, R11, (64 - bits) as u8);
                    self.a.mov_i(RCX, value);
                    self.a.alu(Q, Cmp, R11, RCX);
                    self.a.jcc(Cond::Ne, to);
                    self.a.alu_i(Q, Add, R12, bits as i32);
                }
            }
        }
        self.a.store(boxed(c, CTX_POS), R12);
    }
    /// So many bits are left, or to the label.
    fn enough(&mut self, c: Reg, bits: u64, sure: &mut u64, to: Label) {
        if *sure >= bits {
            *sure -= bits;
            return;
        }
        *sure = 0;
        self.a.lea(R11, at(R12, bits as i32));
        self.a.alu_m(Q, Cmp, R11, boxed(c, CTX_END));
        self.a.jcc(Cond::A, to);
    }
}

/// A command of `bs_match`.
#[derive(Clone, Copy)]
enum Command {
    AtLeast(u64, u64),
    Exactly(u64),
    /// Without a sign, big-endian, at most 56 bits.
    Integer(u64, Arg),
    Skip(u64),
    /// Likewise.
    Equals(u64, u64),
}

impl Command {
    /// Those of a list, if all are simple.
    fn all(list: &[u64]) -> Option<Vec<Command>> {
        const LARGEST: u64 = 1 << 28;
        let mut out = Vec::new();
        let mut k = 0;
        let word = |k: usize| list.get(k).copied();
        while k < list.len() {
            let (c, n) = match list[k] {
                // Numbers of commands, as `bs_match` has them.
                0 => (Command::AtLeast(word(k + 1)?, word(k + 2)?.max(1)), 3),
                1 => (Command::Exactly(word(k + 1)?), 2),
                2 if word(k + 2)? == 0 => (Command::Integer(word(k + 3)?, source(word(k + 4)?)), 5),
                4 => (Command::Skip(word(k + 1)?), 2),
                6 if is_small_word(word(k + 2)?) => {
                    let v = (word(k + 2)? as i64) >> 4;
                    (Command::Equals(word(k + 1)?, v as u64), 3)
                }
                _ => return None,
            };
            let fits = match c {
                Command::AtLeast(b, u) => b < LARGEST && u <= 256 && u.is_power_of_two(),
                Command::Exactly(b) | Command::Skip(b) => b < LARGEST,
                Command::Integer(b, _) => (1..=56).contains(&b),
                Command::Equals(b, v) => (1..=56).contains(&b) && v >> b == 0,
            };
            if !fits {
                return None;
            }
            out.push(c);
            k += n;
        }
        Some(out)
    }
}

/// Words of a match context behind its header: see `purlin_term::layout`.
const CTX_BASE: i32 = 2;
const CTX_POS: i32 = 3;
const CTX_END: i32 = 4;
/// Bytes from a map's term to the word before its first value.
const VALUES_BEFORE: i32 = (FLATMAP_HEAD_WORDS as i32 - 1) * 8 - TAG_BOXED as i32;
