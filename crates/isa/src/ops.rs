//! The specific instruction set: the ops that the engines run.
//!
//! There is one row per op: constant, name, operands with their names and kinds, effects, machine
//! code, contract, and a sentence on what it does. Everything else derives from the rows: the
//! number of each variant, the packing of operands ([`crate::codec`]), the types by which the
//! interpreter and the compiler read them, the output of the disassembler, the interpreter's tables
//! of handlers, and the compiler's table of templates.
//!
//! # Layout of an instruction
//! Instructions are 8-aligned. Unit 0 (16 bits) is the variant number. The operands follow without
//! gaps in the order of the row, and the whole is padded to 8 bytes. A list follows after the
//! padding, in whole words.
//!
//! ```text
//! x          u16  register number * 8        y        u16  (register number + 1) * 8
//! constant   u64  the term                   label    i32  words from this instruction; 0: none
//! S          u64  a constant, or register offset << 4 | 0 (x) or 4 (y); no constant ends in 00
//! D          u16  register offset, | 1 for y H W Q    u16, u32, u64
//! ```
//!
//! # Effects
//! An op without effects does only what its operands show: it reads, writes and jumps.
//!
//! | | |
//! | --- | --- |
//! | `collects` | it may collect: no address of the heap is valid after it |
//! | `fails` | it may raise an exception where its label, if it has one, is none |
//! | `yields` | the process may leave the interpreter there, though nothing is raised |
//! | `calls` | code of another function may run next |
//! | `ends` | control never falls through to the next instruction |
//! | `looks` | it looks at the stack itself, though none of the above happens |
//!
//! # Machine code
//! The word after the effects says how the compiler treats the op ([`MachineCode`]). An op of the
//! kind `template` needs a function of its name in `crates/jit/src/compiler/templates`, or the Rust
//! compiler reports an error.
//!
//! | | |
//! | --- | --- |
//! | `template` | it has a template, which may still run the step if operands are unusual |
//! | `step` | its handler runs as a function, and machine code goes on after it |
//! | `leaves` | machine code exits to the interpreter: it is rare, or leaves the function anyway |
//! | `raises` | its handler runs as a function and always raises an exception |
//! | `fused` | the templates of its parts |
//! | `refuses` | a function that contains it gets no machine code |
//!
//! # Contract
//! After that, a row says (see [`crate::contract`]) which X registers are read and written though
//! no operand names them (`reads`, `writes`), how many hold a value after it (`keeps`), how many
//! reserved words of the heap it takes (`makes`), how it changes the frame (`stack`), which
//! instruction it may skip (`skips`), and which ops it is fused from (`parts`).
//!
//! Builds with debug assertions check each instruction that runs against effects and contract.

use crate::contract::{Contract, Effects, Stack};

/// The encoding of an operand of a variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    X,
    Y,
    C,
    S,
    D,
    L,
    H,
    W,
    Q,
}

impl Form {
    /// Returns its size in 16-bit units.
    pub const fn units(self) -> usize {
        match self {
            Form::X | Form::Y | Form::D | Form::H => 1,
            Form::L | Form::W => 2,
            Form::C | Form::S | Form::Q => 4,
        }
    }
}

/// The role of an operand: how the op uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A term that is read.
    Read,
    /// A register that is written, whatever it holds.
    Written,
    /// A register that is read and then written.
    Changed,
    /// A label to jump to.
    Label,
    /// A function that is called.
    Callee,
    /// A handler of exceptions.
    Handler,
    /// Number of X registers with terms that a collection keeps.
    Live,
    /// A number or an address that says more about the op.
    Plain,
}

macro_rules! operand_kinds {
    ($( $k:ident [$($f:ident),*] $role:ident $doc:literal; )*) => {
        /// The forms that an operand of a row may have.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Kind { $(#[doc = $doc] $k),* }
        impl Kind {
            /// Returns the forms that it may have; the op has one variant for each.
            pub const fn forms(self) -> &'static [Form] {
                match self { $(Kind::$k => &[$(Form::$f),*]),* }
            }
            pub const fn role(self) -> Role {
                match self { $(Kind::$k => Role::$role),* }
            }
        }
    };
}

operand_kinds! {
    Read [X, Y] Read "A register; a variant of the op for each.";
    Value [X, Y, C] Read "A register or a constant; a variant for each.";
    Source [S] Read "A register or a constant, decoded at run time.";
    Write [X, Y] Written "A register; a variant for each.";
    Dest [D] Written "A register, decoded at run time.";
    Change [X, Y] Changed "A register; a variant for each.";
    ChangeSource [S] Changed "A register, decoded at run time; or a constant, which stays.";
    Label [L] Label "A label, or none.";
    Callee [L] Callee "The label of a function.";
    Handler [L] Handler "The label of an exception handler.";
    Live [H] Live "Number of X registers that hold terms.";
    Arity [H] Plain "Number of arguments, in the first X registers.";
    Frame [H] Plain "Number of Y registers.";
    Heap [W] Plain "Number of reserved words of the heap.";
    Count [W] Plain "Length of the list: in words, or as its kind says.";
    Few [H] Plain "As `Count`, for short lists.";
    Element [H] Plain "Offset of an element in a tuple, in bytes.";
    FarElement [W] Plain "The same, for any tuple.";
    Float [H] Plain "A float register: its number times 8.";
    Number [H] Plain "A number of 16 bits.";
    Size [W] Plain "A number of 32 bits.";
    Integer [Q] Plain "A signed number of 64 bits.";
    Term [Q] Plain "An immediate term.";
    Header [Q] Plain "Header word of a tuple.";
    Export [Q] Plain "Address of an export.";
    Native [Q] Plain "Address of a native.";
    Entry [Q] Plain "Address of a fun entry.";
    Bytes [Q] Plain "Address of bytes.";
    Slot [Q] Plain "Address of a slot for a function of a native library.";
    Counter [Q] Plain "Address of a counter.";
    Mark [Q] Plain "Address that identifies a function to profilers.";
}

/// The content of the list after an instruction; the count is its last operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Registers and constants that are read, encoded as in form S.
    Sources,
    /// Registers that are written, encoded likewise.
    Registers,
    /// Pairs of a key and the register that its value goes to.
    Fetches,
    /// Offsets of labels.
    Labels,
    /// `count` sorted immediates, then as many offsets of labels.
    Switch,
    /// Pairs of a constant and the offset of a label.
    Arms,
    /// Pairs of a header word and the offset of a label.
    ArityArms,
    /// `count` pairs of an index and a source.
    Updates,
    /// Segments of a bitstring: five words each.
    Segments,
    /// Commands that match a bitstring, each with its operands.
    Commands,
}

impl List {
    /// Returns the length of a list with that count, in words.
    pub const fn words(self, count: usize) -> usize {
        match self {
            List::Switch | List::Updates => 2 * count,
            _ => count,
        }
    }
}

/// An operand of a row.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub name: &'static str,
    pub kind: Kind,
}

/// How the compiler treats an op. See the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types)]
pub enum MachineCode {
    template,
    step,
    leaves,
    raises,
    fused,
    refuses,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct SpecOp {
    pub name: &'static str,
    /// The operands in the instruction itself.
    pub operands: &'static [Operand],
    /// The list after it.
    pub list: Option<List>,
    pub effects: Effects,
    pub machine_code: MachineCode,
    /// Its contract: everything that operands and effects don't show.
    pub contract: Contract,
    pub doc: &'static str,
}

impl SpecOp {
    /// Whether the op drops the frame before anyone may walk the stack.
    pub fn drops_frame_unseen(&self) -> bool {
        let pops = |row: &SpecOp| row.contract.stack == Stack::Pop;
        let parts = self.contract.parts;
        !self.effects.may_look() && (pops(self) || parts.iter().any(|p| pops(p.op.row())))
    }
    pub const fn variants(&self) -> usize {
        let mut n = 1;
        let mut i = 0;
        while i < self.operands.len() {
            n *= self.operands[i].kind.forms().len();
            i += 1;
        }
        n
    }
    /// Returns the forms of variant `v`, counted from 0; the form of the first operand varies
    /// slowest.
    pub fn forms(&self, v: usize) -> Vec<Form> {
        let mut v = v;
        let mut out = vec![Form::H; self.operands.len()];
        for i in (0..self.operands.len()).rev() {
            let f = self.operands[i].kind.forms();
            out[i] = f[v % f.len()];
            v /= f.len();
        }
        out
    }
    /// Returns the unit where operand `name` begins in the variant whose earlier operands are
    /// registers where possible.
    ///
    /// # Panics
    /// If the row has no such operand.
    pub const fn unit(&self, name: &str) -> usize {
        let mut unit = 1;
        let mut i = 0;
        while !is_same(self.operands[i].name, name) {
            unit += self.operands[i].kind.forms()[0].units();
            i += 1;
        }
        unit
    }
    /// Returns the length in words of the variant with registers only, without its list.
    pub const fn words(&self) -> usize {
        let mut units = 1;
        let mut i = 0;
        while i < self.operands.len() {
            units += self.operands[i].kind.forms()[0].units();
            i += 1;
        }
        units.div_ceil(4)
    }
}

/// Whether two strings are equal, in constants.
pub const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Calls `$m!` with every row: `Constant name {operand: Kind, …; list: Kind} [effect …]
/// machine_code contract(…) … "what it does";`.
#[macro_export]
macro_rules! for_each_specific_op {
    ($m:ident) => {
        $m! {
            // Registers.
            Move move_ {src: Value, dst: Write} [] template "dst = src";
            Move2 move2 {src: Value, dst: Write, src2: Value, dst2: Write} [] fused parts(Move(src, dst) Move(src2, dst2)) "two moves";
            Move3 move3 {src: Read, dst: Write, src2: Read, dst2: Write, src3: Read, dst3: Write} [] fused parts(Move(src, dst) Move(src2, dst2) Move(src3, dst3)) "three moves";
            Swap swap {a: Change, b: Change} [] template "exchange";
            InitY init_y {dst: Write} [] template "y = []";
            InitYs init_ys {count: Count; ys: Registers} [] template "each listed y = []";
            // Frames, calls, returns.
            Allocate allocate {frame: Frame, live: Live} [collects] template stack(Push) "push a frame of so many y registers";
            AllocateZero allocate_zero {frame: Frame, live: Live} [collects] template stack(Push) "push a frame of so many cleared y registers";
            AllocateHeap allocate_heap {frame: Frame, heap: Heap, live: Live} [collects] template stack(Push) "push a frame of so many y registers; room for words of the heap";
            AllocateHeapZero allocate_heap_zero {frame: Frame, heap: Heap, live: Live} [collects] template stack(Push) "push a frame of so many cleared y registers; room for words of the heap";
            TestHeap test_heap {heap: Heap, live: Live} [collects] template "room for words of the heap";
            Deallocate deallocate {frame: Frame} [] template stack(Pop) "drop the frame";
            Trim trim {n: Frame} [] template stack(Trim) "drop the first n y registers";
            Return return_ {} [ends] template reads(First 1) "pc = *e";
            Call call {to: Callee, arity: Arity} [calls yields] template reads(Arity 0) "*e = next; pc = label";
            CallLast call_last {to: Callee, frame: Frame, arity: Arity} [calls yields ends] template reads(Arity 0) stack(Pop) "drop frame; pc = label";
            CallOnly call_only {to: Callee, arity: Arity} [calls yields ends] template reads(Arity 0) "pc = label";
            CallExt call_ext {export: Export, arity: Arity} [calls yields] template reads(Arity 0) "*e = next; pc = export.address";
            CallExtLast call_ext_last {export: Export, frame: Frame, arity: Arity} [calls yields ends] template reads(Arity 0) stack(Pop) "drop frame; pc = export.address";
            CallExtOnly call_ext_only {export: Export, arity: Arity} [calls yields ends] template reads(Arity 0) "pc = export.address";
            MoveCall move_call {src: Value, to: Callee, arity: Arity} [calls yields] fused parts(Move(src, X0) Call(to, arity)) "move to x0; call";
            MoveCallLast move_call_last {src: Value, to: Callee, frame: Frame, arity: Arity} [calls yields ends] fused parts(Move(src, X0) CallLast(to, frame, arity)) "move to x0; call_last";
            MoveCallOnly move_call_only {src: Value, to: Callee, arity: Arity} [calls yields ends] fused parts(Move(src, X0) CallOnly(to, arity)) "move to x0; call_only";
            MoveCallExt move_call_ext {src: Value, export: Export, arity: Arity} [calls yields] fused parts(Move(src, X0) CallExt(export, arity)) "move to x0; call_ext";
            MoveCallExtLast move_call_ext_last {src: Value, export: Export, frame: Frame, arity: Arity} [calls yields ends] fused parts(Move(src, X0) CallExtLast(export, frame, arity)) "move to x0; call_ext_last";
            MoveCallExtOnly move_call_ext_only {src: Value, export: Export, arity: Arity} [calls yields ends] fused parts(Move(src, X0) CallExtOnly(export, arity)) "move to x0; call_ext_only";
            Move2Call move2_call {src: Value, dst: Write, src2: Value, dst2: Write, to: Callee, arity: Arity} [calls yields] fused parts(Move(src, dst) Move(src2, dst2) Call(to, arity)) "two moves; call";
            Move2CallLast move2_call_last {src: Value, dst: Write, src2: Value, dst2: Write, to: Callee, frame: Frame, arity: Arity} [calls yields ends] fused parts(Move(src, dst) Move(src2, dst2) CallLast(to, frame, arity)) "two moves; call_last";
            Move2CallOnly move2_call_only {src: Value, dst: Write, src2: Value, dst2: Write, to: Callee, arity: Arity} [calls yields ends] fused parts(Move(src, dst) Move(src2, dst2) CallOnly(to, arity)) "two moves; call_only";
            Move3Call move3_call {src: Read, dst: Write, src2: Read, dst2: Write, src3: Read, dst3: Write, to: Callee, arity: Arity} [calls yields] fused parts(Move(src, dst) Move(src2, dst2) Move(src3, dst3) Call(to, arity)) "three moves; call";
            TrimCall trim_call {n: Frame, to: Callee, arity: Arity} [calls yields] fused parts(Trim(n) Call(to, arity)) "trim; call";
            MoveReturn move_return {src: Value} [ends] fused parts(Move(src, X0) Return()) "move to x0; return";
            MoveDeallocate move_deallocate {src: Value, frame: Frame} [] fused parts(Move(src, X0) Deallocate(frame)) "move to x0; deallocate";
            MoveDeallocateReturn move_deallocate_return {src: Value, frame: Frame} [ends] fused parts(Move(src, X0) Deallocate(frame) Return()) "move to x0; deallocate; return";
            DeallocateReturn deallocate_return {frame: Frame} [ends] fused parts(Deallocate(frame) Return()) "deallocate; return";
            MoveJump move_jump {src: Value, dst: Write, to: Label} [ends] fused parts(Move(src, dst) Jump(to)) "move; jump";
            AllocateMove allocate_move {frame: Frame, live: Live, src: Read, dst: Write} [collects] fused parts(Allocate(frame, live) Move(src, dst)) "allocate; move";
            AllocateInitY allocate_init_y {frame: Frame, live: Live, dst: Write} [collects] fused parts(Allocate(frame, live) InitY(dst)) "allocate; y = []";
            AllocateGetList allocate_get_list {frame: Frame, live: Live, src: Read, hd: Write, tl: Write} [collects] fused parts(Allocate(frame, live) GetList(src, hd, tl)) "allocate; get_list";
            CallBif call_bif {export: Export, native: Native, arity: Arity} [collects fails yields calls] template reads(Arity 0) writes(First 1) "x0 = native(x0…)";
            CallBifLast call_bif_last {export: Export, native: Native, frame: Frame, arity: Arity} [collects fails yields calls] template reads(Arity 0) writes(First 1) stack(Pop) "drop frame; return native(x0…); the target of its trap returns to the next op";
            CallBifOnly call_bif_only {export: Export, native: Native, arity: Arity} [collects fails yields calls] template reads(Arity 0) writes(First 1) "return native(x0…); the target of its trap returns to the next op, except in a stub";
            CallDirty call_dirty {export: Export, native: Native, arity: Arity, pool: Number} [collects fails yields calls ends] leaves reads(Arity 0) writes(First 1) "return native(x0…) on a dirty thread of the pool, or here as far as possible";
            CallFun call_fun {arity: Arity} [fails yields calls] template reads(Arity 1) writes(All) "call x[arity] with x0…";
            CallFun2 call_fun2 {arity: Arity, fun: Source} [fails yields calls] template reads(Arity 0) writes(All) "call fun with x0…";
            CallFunLast call_fun_last {arity: Arity, frame: Frame} [fails yields calls ends] template reads(Arity 1) writes(All) stack(Pop) "drop frame; call x[arity] with x0…";
            CallFun2Last call_fun2_last {arity: Arity, fun: Source, frame: Frame} [fails yields calls ends] template reads(Arity 0) writes(All) stack(Pop) "drop frame; call fun with x0…";
            Apply apply {arity: Arity} [collects fails yields calls] template reads(Arity 2) writes(All) "call x[n]:x[n+1] with x0…";
            ApplyLast apply_last {frame: Frame, arity: Arity} [collects fails yields calls ends] template reads(Arity 2) writes(All) stack(Pop) "drop frame; call x[n]:x[n+1]";
            IApply i_apply {} [collects fails yields calls ends] leaves reads(First 3) writes(All) "tail call x0:x1 with arguments in list x2";
            IApplyLast i_apply_last {frame: Frame} [collects fails yields calls ends] leaves reads(First 3) writes(All) stack(Pop) "drop frame; as i_apply";
            IApplyFunLast i_apply_fun_last {frame: Frame} [fails yields calls ends] leaves reads(First 2) writes(All) stack(Pop) "drop frame; as i_apply_fun";
            Jump jump {to: Label} [ends] template "pc = label";
            FuncInfo func_info {module: Term, function: Term, arity: Arity, compiled: Size} [fails ends] raises reads(Arity 0) "raise function_clause; `compiled` holds machine code of the next function, or its substitute";
            ErrorHandler error_handler {export: Export} [collects fails calls ends] leaves stack(Other) reads(Given) writes(First 3) "call error_handler:undefined_function for export";
            ProcessExit process_exit {} [yields ends] leaves stack(Other) "the process ends, reason normal";
            Nif nif {slot: Slot} [collects fails yields calls] template stack(Other) reads(Given) writes(All) "return native library function in slot(x0…), if there is one";
            IApplyFun i_apply_fun {} [fails yields calls ends] leaves reads(First 2) writes(All) "tail call fun x0 with arguments in list x1";
            Breakpoint breakpoint {} [collects fails yields calls ends] refuses stack(Other) reads(Given) writes(All) "trace the function that starts here; the operands belong to the replaced op";
            EnterCompiled enter_compiled {} [collects fails yields calls ends] step stack(Other) reads(Given) writes(All) "run the machine code of the function that starts here; the operands belong to the replaced op";
            ReturnTrace return_trace {} [collects ends] step stack(Other) reads(First 1) "report the return of a traced call; drop its frame; return";
            ReturnTime return_time {} [collects ends] step stack(Other) reads(First 1) "record the return of a measured call; drop its frame; return";
            DebugLine debug_line {live: Live} [] template "a line that may get a breakpoint";
            LineBreakpoint line_breakpoint {live: Live} [collects calls] refuses stack(Other) writes(First 4) "a line with a breakpoint: call erts_internal:breakpoint/4, with a frame that keeps live";
            LineResume line_resume {} [ends] refuses stack(Other) writes(All) "return of a line's breakpoint: live from its frame; drop frame; go on after the breakpoint";
            Hibernate hibernate {} [collects fails yields calls ends] leaves stack(Other) reads(First 3) "drop stack, shrink heap, then as hibernated";
            Hibernated hibernated {} [collects fails yields calls ends] leaves stack(Other) reads(First 3) writes(All) "wait for a message, then tail call x0:x1 with arguments in list x2";
            // Lists and tuples.
            GetList get_list {src: Read, hd: Write, tl: Write} [] template "hd, tl = src";
            IsNonemptyGetList is_nonempty_get_list {fail: Label, src: Read, hd: Write, tl: Write} [] fused parts(IsNonemptyList(fail, src) GetList(src, hd, tl)) "else jump; hd, tl = src";
            TestHeapPutList test_heap_put_list {live: Live, hd: Value, tl: Value, dst: Write} [collects] fused parts(TestHeap(2, live) PutList(hd, tl, dst)) "room for two words; dst = [hd | tl]";
            TestHeapPutListReturn test_heap_put_list_return {live: Live, hd: Value, tl: Value, dst: Write, frame: Frame} [collects ends] fused parts(TestHeap(2, live) PutList(hd, tl, dst) Deallocate(frame) Return()) "test_heap_put_list; deallocate; return";
            GetHd get_hd {src: Read, dst: Write} [] template "dst = hd(src)";
            GetTl get_tl {src: Read, dst: Write} [] template "dst = tl(src)";
            PutList put_list {hd: Value, tl: Value, dst: Write} [] template makes(Words 2) "dst = [hd | tl]";
            GetTupleElement get_tuple_element {src: Read, offset: Element, dst: Write} [] template "dst = word of tuple at byte offset";
            GetTupleElements2 get_tuple_elements_2 {src: Read, offset: Element, dst: Write, dst2: Write} [] template parts(GetTupleElement(src, offset, dst) GetTupleElement(src, (offset + 8), dst2)) "two neighbouring elements";
            GetTupleElementFar get_tuple_element_far {src: Read, dst: Write, offset: FarElement} [] template "dst = word of tuple at byte offset, for offsets over 16 bits";
            SetTupleElement set_tuple_element {src: Source, tuple: Source, offset: FarElement} [] template "tuple word at byte offset = src";
            PutTuple put_tuple {dst: Write, count: Count; elements: Sources} [] template makes(List 1) "dst = {list}";
            PutTuple2 put_tuple_2 {a: Value, b: Value, dst: Write} [] template makes(Words 3) "dst = {a, b}";
            PutTuple3 put_tuple_3 {a: Value, b: Value, c: Value, dst: Write} [] template makes(Words 4) "dst = {a, b, c}";
            UpdateRecord update_record {src: Source, dst: Dest, size: Size, count: Count; updates: Updates} [] template makes(Size 1) "dst = copy of a tuple of that size, with (index, value) pairs put into it";
            // Tests.
            IsLt is_lt {fail: Label, a: Value, b: Value} [] template "else jump";
            IsGe is_ge {fail: Label, a: Value, b: Value} [] template "else jump";
            IsLtReturn is_lt_return {fail: Label, a: Value, b: Value, src: Value} [ends] fused parts(IsLt(fail, a, b) Move(src, X0) Return()) "is_lt; move to x0; return";
            IsGeReturn is_ge_return {fail: Label, a: Value, b: Value, src: Value} [ends] fused parts(IsGe(fail, a, b) Move(src, X0) Return()) "is_ge; move to x0; return";
            IsNilReturn is_nil_return {fail: Label, src: Read, value: Value} [ends] fused parts(IsNil(fail, src) Move(value, X0) Return()) "is_nil; move to x0; return";
            IsInRange is_in_range {fail: Label, src: Read, least: Term, most: Term} [] template parts(IsGe(fail, src, least) IsGe(fail, most, src)) "else jump; between two small integers, inclusive";
            IsEq is_eq {fail: Label, a: Value, b: Value} [] template "else jump";
            IsNe is_ne {fail: Label, a: Value, b: Value} [] template "else jump";
            IsEqExact is_eq_exact {fail: Label, a: Value, b: Value} [] template "else jump";
            IsNeExact is_ne_exact {fail: Label, a: Value, b: Value} [] template "else jump";
            IsEqImmed is_eq_immed {fail: Label, src: Read, immed: Term} [] template "else jump; src is exactly the immediate";
            IsEqImmedReturn is_eq_immed_return {fail: Label, src: Read, immed: Term, value: Value} [ends] fused parts(IsEqImmed(fail, src, immed) Move(value, X0) Return()) "is_eq_immed; move to x0; return";
            IsNeImmed is_ne_immed {fail: Label, src: Read, immed: Term} [] template "else jump; src is not the immediate";
            IsInteger is_integer {fail: Label, src: Read} [] template "else jump";
            IsFloat is_float {fail: Label, src: Read} [] template "else jump";
            IsNumber is_number {fail: Label, src: Read} [] template "else jump";
            IsAtom is_atom {fail: Label, src: Read} [] template "else jump";
            IsPid is_pid {fail: Label, src: Read} [] template "else jump";
            IsReference is_reference {fail: Label, src: Read} [] template "else jump";
            IsPort is_port {fail: Label, src: Read} [] template "else jump";
            IsNil is_nil {fail: Label, src: Read} [] template "else jump";
            IsBinary is_binary {fail: Label, src: Read} [] template "else jump";
            IsBitstr is_bitstr {fail: Label, src: Read} [] template "else jump";
            IsList is_list {fail: Label, src: Read} [] template "else jump";
            IsNonemptyList is_nonempty_list {fail: Label, src: Read} [] template "else jump";
            IsTuple is_tuple {fail: Label, src: Read} [] template "else jump";
            IsTupleOfArity is_tuple_of_arity {fail: Label, src: Read, header: Header} [] template parts(IsTuple(fail, src) TestArity(fail, src, header)) "else jump; the header has the arity";
            TestArity test_arity {fail: Label, src: Read, header: Header} [] template "else jump; src is known to be a tuple";
            IsTaggedTuple is_tagged_tuple {fail: Label, src: Read, header: Header, tag: Term} [] template "else jump; a tuple with that header, whose first element is the tag";
            IsFunction is_function {fail: Label, src: Read} [] template "else jump";
            IsFunction2 is_function2 {fail: Label, fun: Source, arity: Source} [] template "else jump";
            IsBoolean is_boolean {fail: Label, src: Read} [] template "else jump";
            IsMap is_map {fail: Label, src: Read} [] template "else jump";
            SelectVal select_val {src: Read, fail: Label, count: Count; arms: Switch} [ends] template "search the sorted immediates; n values, then n label offsets";
            SelectLinear select_linear {src: Source, fail: Label, count: Count; arms: Arms} [ends] step "compare with each: value, label pairs";
            JumpTable jump_table {src: Read, fail: Label, first: Integer, count: Count; table: Labels} [ends] template "index by small minus first; n label offsets, 0 for the label";
            SelectArity select_arity {src: Read, fail: Label, count: Count; arms: ArityArms} [ends] template "search the headers in order: header, label pairs";
            TypeSwitch type_switch {src: Read, count: Count; classes: Labels} [ends] template "jump by the type: count, label offset of each class of terms";
            // Arithmetic and natives in bodies and guards.
            Add add {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a + b";
            Sub sub {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a - b";
            AddReturn add_return {fail: Label, a: Value, b: Value, dst: Write, frame: Frame} [collects fails ends] fused parts(Add(NONE, a, b, dst, (about 1)) Deallocate(frame) Return()) "add, which has no label; deallocate; return";
            AddCallOnly add_call_only {fail: Label, a: Value, b: Value, dst: Write, to: Callee, arity: Arity} [collects fails calls yields ends] fused parts(Add(NONE, a, b, dst, (about arity)) CallOnly(to, arity)) "add, which has no label; call_only";
            SubCallOnly sub_call_only {fail: Label, a: Value, b: Value, dst: Write, to: Callee, arity: Arity} [collects fails calls yields ends] fused parts(Sub(NONE, a, b, dst, (about arity)) CallOnly(to, arity)) "sub, likewise; call_only";
            Mul mul {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails yields] template "dst = a * b, on a dirty thread if that takes long";
            IntDiv int_div {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails yields] template "dst = a div b, on a dirty thread if that takes long";
            Rem rem_ {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails yields] template "dst = a rem b, on a dirty thread if that takes long";
            Band band {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a band b";
            Bor bor {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a bor b";
            Bxor bxor {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a bxor b";
            Bsl bsl {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a bsl b";
            Bsr bsr {fail: Label, a: Value, b: Value, dst: Write, live: Live} [collects fails] template "dst = a bsr b";
            Arith arith {fail: Label, a: Source, b: Source, dst: Dest, operation: Number, live: Live} [collects fails yields] step "dst = result of the operation with that number, of a and b";
            FastElement fast_element {tuple: Read, offset: Element, dst: Write} [] template skips(Bif2) "dst = word of tuple at byte offset, and skip bif2; run bif2 if there is none";
            FastElementOf fast_element_of {tuple: Read, index: Read, dst: Write} [] template skips(Bif2) "dst = element(index, tuple), likewise";
            FastCompare fast_compare {a: Source, b: Source, dst: Dest, comparison: Number} [] template skips(Bif2) "dst = result of the comparison with that number, and skip bif2; run bif2 if both words don't decide it";
            FastMapGet fast_map_get {map: Read, key: Source, dst: Write} [] template skips(Bif2) "dst = map_get(key, map), and skip bif2; run bif2 if there is none";
            FastIsMapKey fast_is_map_key {map: Read, key: Source, dst: Write} [] template skips(Bif2) "dst = is_map_key(key, map), likewise; run bif2 if it is no map";
            FastHd fast_hd {src: Read, dst: Write} [] template skips(Bif1) "dst = hd(a), and skip bif1; run bif1 if there is none";
            FastTl fast_tl {src: Read, dst: Write} [] template skips(Bif1) "dst = tl(a), likewise";
            FastTupleSize fast_tuple_size {src: Read, dst: Write} [] template skips(Bif1) "dst = tuple_size(a), likewise";
            FastByteSize fast_byte_size {src: Read, dst: Write} [] template skips(Bif1) "dst = byte_size(a), likewise";
            FastMapSize fast_map_size {src: Read, dst: Write} [] template skips(Bif1) "dst = map_size(a), likewise";
            FastLength fast_length {src: Read, dst: Write} [] template skips(Length) "dst = length(a), likewise";
            FastSetelement fast_setelement {} [collects] template reads(First 3) writes(First 1) keeps(3) skips(CallBif) "x0 = setelement(x0, x1, x2), and skip call_bif; run call_bif if that fails";
            Bif0 bif0 {native: Native, dst: Dest} [fails] template makes(Rest) "dst = native()";
            Bif1 bif1 {fail: Label, native: Native, a: Source, dst: Dest, export: Export, live: Live} [collects fails] template "dst = native(a); the export names it in errors";
            Bif2 bif2 {fail: Label, native: Native, a: Source, b: Source, dst: Dest, export: Export, live: Live} [collects fails] template "dst = native(a, b); the export names it in errors";
            Bif3 bif3 {fail: Label, native: Native, a: Source, b: Source, c: Source, dst: Dest, export: Export, live: Live} [collects fails] step "dst = native(a, b, c); the export names it in errors";
            Length length {fail: Label, native: Native, a: Source, dst: Dest, export: Export, live: Live} [collects fails yields] step "dst = length(a), in several time slices if it is long";
            // Exceptions.
            Catch catch {dst: Write, to: Handler} [] template "open a catch or try";
            CatchEnd catch_end {dst: Write} [collects] template reads(First 1) writes(First 1) keeps(1) "close a catch";
            TryEnd try_end {dst: Write} [] template "close a try";
            TryCase try_case {dst: Write} [] template reads(First 4) writes(First 3) keeps(3) "x0, x1, x2 = class, reason, trace";
            Badmatch badmatch {value: Source} [fails ends] raises "raise {badmatch, v}";
            CaseEnd case_end {value: Source} [fails ends] raises "raise {case_clause, v}";
            TryCaseEnd try_case_end {value: Source} [fails ends] raises "raise {try_clause, v}";
            IfEnd if_end {} [fails ends] raises "raise if_clause";
            Badrecord badrecord {value: Source} [fails ends] raises "raise {badrecord, v}";
            Raise raise {trace: Source, value: Source} [fails ends] raises "raise value again, with its trace";
            RawRaise raw_raise {} [fails] step reads(First 3) writes(First 1) keeps(1) "raise class x0, reason x1, trace x2";
            BuildStacktrace build_stacktrace {} [collects] step reads(First 1) writes(First 1) keeps(1) "x0 = list form of x0";
            // Funs.
            MakeFun make_fun {entry: Entry, dst: Dest, count: Few; environment: Sources} [] template makes(List 5) "dst = fun of entry with environment";
            // Messages.
            Send send {} [collects fails yields calls] template reads(First 2) writes(First 1) keeps(1) "x0 ! x1";
            LoopRec loop_rec {fail: Label, dst: Dest} [collects yields] template keeps(0) "dst = current message, else jump";
            LoopRecEnd loop_rec_end {to: Label} [yields ends] template keeps(0) makes(Back) "go on to the next message";
            RemoveMessage remove_message {} [looks] template "take the current message out";
            Wait wait {to: Label} [yields ends] template keeps(0) "wait for a message";
            WaitTimeout wait_timeout {to: Label, time: Source} [fails yields] leaves keeps(0) "wait for a message or a time";
            Timeout timeout {} [] step "the receive ends";
            RecvMarkerReserve recv_marker_reserve {dst: Dest} [] step makes(Rest) "dst = marker";
            RecvMarkerBind recv_marker_bind {marker: Source, reference: Source} [] step "bind the marker to the reference";
            RecvMarkerClear recv_marker_clear {reference: Source} [] step "forget the marker of the reference";
            RecvMarkerUse recv_marker_use {reference: Source} [] step "begin the receive at the marker that is bound to the reference, if there is one";
            // Floats.
            FLoad fload {src: Source, dst: Float} [fails] template "fr = float or number";
            FConv fconv {src: Source, dst: Float} [fails] template "fr = number";
            FStore fstore {src: Float, dst: Dest} [] template makes(Words 2) "dst = boxed fr";
            FMove fmove {src: Float, dst: Float} [] template "fr = fr";
            FAdd fadd {a: Float, b: Float, dst: Float} [fails] template "fr = a + b";
            FSub fsub {a: Float, b: Float, dst: Float} [fails] template "fr = a - b";
            FMul fmul {a: Float, b: Float, dst: Float} [fails] template "fr = a * b";
            FDiv fdiv {a: Float, b: Float, dst: Float} [fails] template "fr = a / b";
            FNegate fnegate {a: Float, dst: Float} [fails] step "fr = -a";
            // Maps.
            PutMapAssoc put_map_assoc {fail: Label, map: Source, dst: Dest, live: Live, count: Count; pairs: Sources} [collects fails] template "dst = map with pairs put into it";
            PutMapExact put_map_exact {fail: Label, map: Source, dst: Dest, live: Live, count: Count; pairs: Sources} [collects fails] template "dst = map with existing keys updated";
            NewMap new_map {keys: Source, dst: Dest, live: Live, count: Count; values: Sources} [collects] template "dst = map of sorted keys, which are a literal tuple, and values";
            HasMapFields has_map_fields {fail: Label, map: Source, count: Count; keys: Sources} [] template "else jump; the map has all the keys";
            GetMapElements get_map_elements {fail: Label, map: Source, count: Count; pairs: Fetches} [] template "read the value of each key into its register, else jump";
            // Native records.
            IsRecord is_record {fail: Label, src: Source} [] step "else jump";
            IsRecordOf is_record_of {fail: Label, src: Source, module: Term, name: Term} [] step "else jump; a record of that module and name";
            IsRecordOpen is_record_open {fail: Label, src: Source, from: Term} [] step "else jump; a record that is exported, or of module from";
            GetRecordFields get_record_fields {fail: Label, src: Source, count: Count; pairs: Fetches} [] step "read each field into its register, else jump";
            GetRecordField get_record_field {fail: Label, src: Source, dst: Dest, module: Term, name: Term, field: Term} [fails] step "dst = field of an exported record of module and name; nil module: any module; both nil: any record";
            NewRecord new_record {fail: Label, definition: Source, dst: Dest, live: Live, count: Count; pairs: Sources} [collects fails] step "dst = record with pairs";
            NewRecordOf new_record_of {fail: Label, id: Source, dst: Dest, module: Term, name: Term, live: Live, count: Count; pairs: Sources} [collects fails] step "dst = record of another module with pairs";
            ChangeRecord change_record {fail: Label, src: Source, dst: Dest, module: Term, name: Term, open: Term, live: Live, count: Count; pairs: Sources} [collects fails] step "dst = src with pairs; a record of module and name, or any if they are nil, exported or of module open";
            // Coverage.
            CountRun count_run {counter: Counter} [] step "count an execution of the function or line";
            // Profiles of the system.
            Running running {function: Mark} [] template "record the running function for `perf`";
            // Bit syntax: matching.
            BsStartMatch bs_start_match {fail: Label, src: Source, dst: Dest, live: Live, slots: Number} [collects fails] template "dst = match context of src, with slots to save positions in";
            BsContext bs_context {fail: Label, context: Change, live: Live} [collects fails] template "bs_start_match of a register into itself, without save slots";
            BsContextPosition bs_context_position {context: Change, position: Write, live: Live} [collects fails] fused parts(BsContext(NONE, context, live) BsGetPosition(context, position, (about live))) "bs_context of a known bitstring; its position";
            BsGetByte bs_get_byte {fail: Label, context: Read, dst: Write} [] template "dst = next 8 bits, unsigned, else jump";
            BsNextByte bs_next_byte {fail: Label, context: Change, dst: Write, live: Live} [collects fails] fused parts(BsContext(NONE, context, live) BsGetByte(fail, context, dst)) "bs_context of a known bitstring; bs_get_byte";
            BsNextByteTable bs_next_byte_table {fail: Label, context: Change, dst: Write, live: Live, other: Label, first: Integer, count: Count; table: Labels} [collects fails ends] fused parts(BsContext(NONE, context, live) BsGetByte(fail, context, dst) JumpTable(dst, other, first, count)) "bs_next_byte; jump_table of its result";
            BsNextBytePosition bs_next_byte_position {fail: Label, context: Change, position: Write, dst: Write, live: Live} [collects fails] fused parts(BsContext(NONE, context, live) BsGetPosition(context, position, (about live)) BsGetByte(fail, context, dst)) "bs_context_position; bs_get_byte";
            BsGetInteger bs_get_integer {fail: Label, context: Source, size: Source, unit: Size, flags: Number, dst: Dest, live: Live} [collects] step "dst = integer of size * unit bits, else jump";
            BsGetSmall bs_get_small {fail: Label, context: Read, bits: Number, flags: Number, dst: Write} [] template "dst = integer of 1 to 56 bits, else jump";
            BsSkipFixed bs_skip_fixed {fail: Label, context: Read, bits: Size} [] template "skip so many bits, else jump";
            BsGetFloat bs_get_float {fail: Label, context: Source, size: Source, unit: Size, flags: Number, dst: Dest, live: Live} [collects] step "dst = float of size * unit bits, else jump";
            BsGetBinary bs_get_binary {fail: Label, context: Source, size: Source, unit: Size, flags: Number, dst: Dest, live: Live} [collects] template "dst = bitstring of size * unit bits (atom all: the rest, a multiple of unit), else jump";
            BsSkipBits bs_skip_bits {fail: Label, context: Source, size: Source, unit: Size} [] template "skip size * unit bits, else jump";
            BsTestTail bs_test_tail {fail: Label, context: Source, bits: Integer} [] template "else jump; exactly that many bits are left";
            BsTestUnit bs_test_unit {fail: Label, context: Source, unit: Size} [] template "else jump; the number of bits left is a multiple of unit";
            BsMatchString bs_match_string {fail: Label, context: Source, bits: Size, bytes: Bytes} [] step "skip that many bits if they are those at the address, else jump";
            BsGetUtf bs_get_utf {fail: Label, context: Source, encoding: Number, flags: Number, dst: Dest} [] template "dst = next character in an encoding of 8, 16 or 32 bits, else jump";
            BsSkipUtf bs_skip_utf {fail: Label, context: Source, encoding: Number, flags: Number} [] template "skip a character in an encoding of 8, 16 or 32 bits, else jump";
            BsGetTail bs_get_tail {context: Source, dst: Dest, live: Live} [collects] template "dst = the rest as a bitstring";
            BsGetPosition bs_get_position {context: Source, dst: Dest, live: Live} [] template "dst = position of the context";
            BsSetPosition bs_set_position {context: Source, position: Source} [] template "set the position of the context";
            BsMatch bs_match {fail: Label, context: Source, count: Count; commands: Commands} [collects] template "run the commands: tests, values and skips, else jump";
            BsContextToBinary bs_context_to_binary {context: ChangeSource} [] step makes(Rest) "match context becomes a bitstring again";
            BsSave bs_save {context: Source, slot: Number} [] step "store the position in a slot";
            BsRestore bs_restore {context: Source, slot: Number} [] step "go back to the position in a slot";
            // Bit syntax: construction.
            BsCreateBin bs_create_bin {fail: Label, dst: Dest, heap: Heap, live: Live, count: Count; segments: Segments} [collects fails] template "dst = bitstring of the segments, and room for so many words of the heap";
            BsInit bs_init {fail: Label, size: Source, heap: Heap, live: Live, unit: Number, dst: Dest} [collects fails] step "start a bitstring of size * unit bits (unit 1 or 8)";
            BsAppend bs_append {fail: Label, size: Source, heap: Heap, live: Live, unit: Size, binary: Source, dst: Dest} [collects fails] step "start a bitstring that begins with a binary, with size * unit bits more";
            BsPrivateAppend bs_private_append {fail: Label, size: Source, unit: Size, binary: Source, dst: Dest} [fails] step makes(Rest) "start after a binary that nothing else holds";
            BsPutInteger bs_put_integer {fail: Label, size: Source, unit: Size, flags: Number, value: Source} [fails] step "put an integer of size * unit bits";
            BsPutFloat bs_put_float {fail: Label, size: Source, unit: Size, flags: Number, value: Source} [fails] step "put a float of size * unit bits";
            BsPutBinary bs_put_binary {fail: Label, size: Source, unit: Size, flags: Number, value: Source} [fails] step "put size * unit bits of a bitstring (atom all: everything)";
            BsPutString bs_put_string {count: Size, bytes: Bytes} [fails] step "put the bytes at the address";
            BsPutUtf bs_put_utf {fail: Label, encoding: Number, flags: Number, value: Source} [fails] step "put a character in an encoding of 8, 16 or 32 bits";
            BsUtfSize bs_utf_size {fail: Label, encoding: Number, value: Source, dst: Dest} [] step "dst = bytes of a character in an encoding of 8 or 16 bits";
            BsAdd bs_add {fail: Label, a: Source, b: Source, unit: Size, dst: Dest} [fails] step "dst = a + b * unit";
            BsInitWritable bs_init_writable {} [collects] step reads(First 1) writes(First 1) keeps(1) "x0 = empty writable binary of x0 bytes";
        }
    };
}

macro_rules! specific_ops {
    ($( $c:ident $name:ident {$($o:ident: $k:ident),* $(; $l:ident: $lk:ident)?} [$($fx:ident)*] $mc:ident $($what:ident($($w:tt)*))* $doc:literal; )*) => {
        /// An op of the table; the value is the index of its row.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum Op { $(#[doc = $doc] $c),* }
        /// The rows.
        pub const OPS: &[SpecOp] = &[$({
            const OPERANDS: &[Operand] = &[$(Operand { name: stringify!($o), kind: Kind::$k }),*];
            SpecOp {
                name: stringify!($name),
                operands: OPERANDS,
                list: { let list: &[List] = &[$(List::$lk)?]; if list.is_empty() { None } else { Some(list[0]) } },
                #[allow(unused_mut)]
                effects: {
                    let mut e = NO_EFFECTS;
                    $(e.$fx = true;)*
                    e
                },
                machine_code: MachineCode::$mc,
                #[allow(unused_mut)]
                contract: {
                    let mut c = Contract::PLAIN;
                    $($crate::row_contract!(c $what $($w)*);)*
                    c
                },
                doc: $doc,
            }
        }),*];
        /// The ops in the order of the rows.
        const ALL: [Op; OPS.len()] = [$(Op::$c),*];
    };
}
const NO_EFFECTS: Effects = Effects {
    collects: false,
    fails: false,
    yields: false,
    calls: false,
    ends: false,
    looks: false,
};
for_each_specific_op!(specific_ops);

const fn count() -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < OPS.len() {
        n += OPS[i].variants();
        i += 1;
    }
    n
}

/// Number of variants of all ops.
pub const VARIANTS: usize = count();

const fn bases() -> [u16; OPS.len()] {
    let mut out = [0; OPS.len()];
    let mut n = 0;
    let mut i = 0;
    while i < OPS.len() {
        out[i] = n as u16;
        n += OPS[i].variants();
        i += 1;
    }
    out
}

/// The number of the first variant of each op.
pub const BASE: [u16; OPS.len()] = bases();

impl Op {
    /// Returns the op of the row with that index.
    pub(crate) const fn at(row: usize) -> Op {
        ALL[row]
    }
    pub const fn row(self) -> &'static SpecOp {
        &OPS[self as usize]
    }
    /// Returns the number of its only variant.
    ///
    /// # Panics
    /// If it has several.
    pub const fn only_variant(self) -> u16 {
        assert!(self.row().variants() == 1, "the op has several variants");
        BASE[self as usize]
    }
    /// Returns the number of the variant with those forms; `None` if the row doesn't allow them.
    pub const fn variant(self, forms: &[Form]) -> Option<u16> {
        let row = self.row();
        if forms.len() != row.operands.len() {
            return None;
        }
        let mut v = 0;
        let mut i = 0;
        while i < forms.len() {
            let all = row.operands[i].kind.forms();
            let mut at = 0;
            while all[at] as u8 != forms[i] as u8 {
                at += 1;
                if at == all.len() {
                    return None;
                }
            }
            v = v * all.len() + at;
            i += 1;
        }
        Some(BASE[self as usize] + v as u16)
    }
    /// Returns the op of a variant number; `None` if there is no such variant.
    pub fn of(number: u16) -> Option<Op> {
        if number as usize >= VARIANTS {
            return None;
        }
        Some(ALL[BASE.partition_point(|&b| b <= number) - 1])
    }
}

// Relations on which the code that reads and writes instructions relies.
const _: () = {
    // Given the entry of a function, the field `compiled` is found four bytes before it, if its
    // `func_info` directly precedes it.
    let info = Op::FuncInfo.row();
    assert!(info.unit("compiled") + 2 == info.words() * 4);
    // A variant number fits a unit.
    assert!(VARIANTS <= u16::MAX as usize);
    let mut i = 0;
    while i < OPS.len() {
        let row = &OPS[i];
        let n = row.operands.len();
        let mut k = 0;
        while k < n {
            let operand = row.operands[k];
            // Only registers and constants have variants of an op.
            assert!(
                operand.kind.forms().len() == 1
                    || matches!(
                        operand.kind.role(),
                        Role::Read | Role::Written | Role::Changed
                    )
            );
            k += 1;
        }
        // The count of a list is the last operand.
        assert!(
            row.list.is_none()
                || n > 0 && matches!(row.operands[n - 1].kind, Kind::Count | Kind::Few)
        );
        // A fused op has parts, and the handler of an op with parts does all of their work at once.
        let has_parts = !row.contract.parts.is_empty();
        assert!(match row.machine_code {
            MachineCode::fused => has_parts,
            MachineCode::template => true,
            _ => !has_parts,
        });
        // An op of the kind `raises` does nothing else.
        let e = row.effects;
        assert!(!matches!(row.machine_code, MachineCode::raises) || e.fails && e.ends);
        i += 1;
    }
};

/// Returns the row of a variant number, and the variant's number within the row.
pub fn lookup(number: u16) -> Option<(&'static SpecOp, usize)> {
    if number as usize >= VARIANTS {
        return None;
    }
    let i = BASE.partition_point(|&b| b <= number) - 1;
    Some((&OPS[i], (number - BASE[i]) as usize))
}

/// Returns the length in words of an instruction with those forms, without its list.
pub fn words(forms: &[Form]) -> usize {
    (1 + forms.iter().map(|f| f.units()).sum::<usize>()).div_ceil(4)
}

/// The value of `live` in an instruction that doesn't know its live registers: nothing is collected
/// there.
pub const NO_LIVE: usize = 0xFFFF;

macro_rules! comparisons {
    ($($c:ident $v:ident $name:literal;)*) => {
        /// The comparisons, by their number in `fast_compare`.
        pub const COMPARISONS: [&str; comparison::COUNT] = [$($name),*];
        /// Numbers of the comparisons.
        pub mod comparison {
            enum Number { $($v),* , Count }
            $(#[doc = concat!("`", $name, "`")] pub const $c: usize = Number::$v as usize;)*
            pub(super) const COUNT: usize = Number::Count as usize;
        }
    };
}
comparisons! {
    SAME Same "=:=";
    NOT_SAME NotSame "=/=";
    EQUAL Equal "==";
    NOT_EQUAL NotEqual "/=";
    LESS Less "<";
    NOT_LESS NotLess ">=";
    GREATER Greater ">";
    NOT_GREATER NotGreater "=<";
}

/// Numbers of the pools of dirty threads, in `call_dirty`.
pub mod dirty {
    /// The pool for input and output.
    pub const IO: u16 = 0;
    /// The pool for computation.
    pub const CPU: u16 = 1;
    /// The pool for input and output, unless the native does without a dirty thread.
    pub const IO_LATER: u16 = 2;
}

macro_rules! operations {
    ($($number:ident $op:ident $name:literal;)* - $last:ident $last_name:literal;) => {
        /// Numbers of the operations on integers, in `arith` and for the ops that have a row of
        /// their own.
        pub mod arith {
            use super::Op;
            enum Number { $($op),* , Last }
            $(#[doc = concat!("`", $name, "`")] pub const $number: usize = Number::$op as usize;)*
            /// Negation of the second operand; the first is 0.
            pub const $last: usize = Number::Last as usize;
            /// Erlang name and arity of each operation; the index is its number.
            pub const OPS: &[(&str, u8)] = &[$(($name, 2),)* ($last_name, 1)];
            /// Returns the number of an op that has a row of its own.
            pub const fn number(op: Op) -> Option<usize> {
                match op {
                    $(Op::$op => Some($number),)*
                    _ => None,
                }
            }
        }
    };
}
operations! {
    ADD Add "+";
    SUB Sub "-";
    MUL Mul "*";
    INT_DIV IntDiv "div";
    REM Rem "rem";
    BAND Band "band";
    BOR Bor "bor";
    BXOR Bxor "bxor";
    BSL Bsl "bsl";
    BSR Bsr "bsr";
    - NEGATE "-";
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn every_variant_leads_back_to_its_row() {
        for n in 0..VARIANTS as u16 {
            let (row, v) = lookup(n).unwrap();
            let op = OPS.iter().position(|r| r.name == row.name).unwrap();
            assert_eq!(BASE[op] as usize + v, n as usize);
            let forms = row.forms(v);
            let again = (0..row.variants()).find(|&w| row.forms(w) == forms);
            assert_eq!(again, Some(v));
        }
    }
}
