//! The specific instruction set: what the interpreter runs.
//!
//! One row per op: constant, name, operand kinds, effect. Everything else derives from the rows: the number of each
//! variant, how the loader packs operands, what the disassembler prints, and the interpreter's table of handlers.
//!
//! # Layout of an instruction
//! Instructions are 8-aligned. Unit 0 (16 bits) is the variant number, the operands follow without gaps in the order
//! of the row; the whole is padded to 8 bytes. Ops whose row ends in [`Opnd::List`] have their list behind that, in
//! whole words.
//!
//! ```text
//! x          u16  register number * 8              y        u16  (register number + 1) * 8
//! constant   u64  the term                         label    i32  words from this instruction; 0: none
//! S          u64  a constant, or register offset << 4 | 0 (x) or 4 (y): no constant ends in bits 00
//! D          u16  register offset, | 1 for y       H W Q    u16, u32, u64
//! ```

/// What an operand of a row may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opnd {
    /// X or Y register; a variant of the op for each.
    R,
    /// X register, Y register or constant; a variant for each.
    V,
    /// Any source, told apart at run time.
    S,
    /// Any register that is written, told apart at run time.
    D,
    /// A label.
    L,
    /// 16 bits.
    H,
    /// 32 bits.
    W,
    /// 64 bits: an address or a raw number.
    Q,
    /// Words behind the instruction; their number stands in an operand before. Only memory bounds how many a module has.
    List,
}

/// What stands in an operand of a variant.
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
    /// 16-bit units it takes.
    pub const fn units(self) -> usize {
        match self {
            Form::X | Form::Y | Form::D | Form::H => 1,
            Form::L | Form::W => 2,
            Form::C | Form::S | Form::Q => 4,
        }
    }
}

impl Opnd {
    /// The forms it may have: one variant of the op each.
    pub const fn forms(self) -> &'static [Form] {
        match self {
            Opnd::R => &[Form::X, Form::Y],
            Opnd::V => &[Form::X, Form::Y, Form::C],
            Opnd::S => &[Form::S],
            Opnd::D => &[Form::D],
            Opnd::L => &[Form::L],
            Opnd::H => &[Form::H],
            Opnd::W => &[Form::W],
            Opnd::Q => &[Form::Q],
            Opnd::List => &[],
        }
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct SpecOp {
    pub name: &'static str,
    pub operands: &'static [Opnd],
    pub doc: &'static str,
}

impl SpecOp {
    /// Operands that stand in the instruction itself.
    pub const fn fixed(&self) -> usize {
        let n = self.operands.len();
        if n > 0 && matches!(self.operands[n - 1], Opnd::List) {
            n - 1
        } else {
            n
        }
    }
    /// How many variants it has.
    pub const fn variants(&self) -> usize {
        let mut n = 1;
        let mut i = 0;
        while i < self.fixed() {
            n *= self.operands[i].forms().len();
            i += 1;
        }
        n
    }
    /// The forms of variant `v`, counted from 0; the first operand varies slowest.
    pub fn forms(&self, v: usize) -> Vec<Form> {
        let mut v = v;
        let mut out = vec![Form::H; self.fixed()];
        for i in (0..self.fixed()).rev() {
            let f = self.operands[i].forms();
            out[i] = f[v % f.len()];
            v /= f.len();
        }
        out
    }
}

macro_rules! specific_ops {
    ($( $c:ident $name:ident [$($k:ident),*] $doc:literal; )*) => {
        /// An op of the table; the value is the index of its row.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum Op { $(#[doc = $doc] $c),* }
        /// The rows.
        pub const OPS: &[SpecOp] = &[$(SpecOp {
            name: stringify!($name),
            operands: &[$(Opnd::$k),*],
            doc: $doc,
        }),*];
    };
}

specific_ops! {
    // Registers.
    Move move_ [V, R] "dst = src";
    Move2 move2 [V, R, V, R] "two moves";
    Move3 move3 [R, R, R, R, R, R] "three moves";
    Swap swap [R, R] "exchange";
    InitY init_y [R] "y = []";
    InitYs init_ys [W, List] "each listed y = []";
    // Frames, calls, returns.
    Allocate allocate [H, H] "frame of n y registers; live";
    AllocateZero allocate_zero [H, H] "frame of n cleared y registers; live";
    AllocateHeap allocate_heap [H, W, H] "frame of n y registers; heap words; live";
    AllocateHeapZero allocate_heap_zero [H, W, H] "frame of n cleared y registers; heap words; live";
    TestHeap test_heap [W, H] "room for heap words; live";
    Deallocate deallocate [H] "drop frame of n";
    Trim trim [H] "drop the first n y registers";
    Return return_ [] "pc = *e";
    Call call [L, H] "*e = next; pc = label; arity, for a time slice that ends here";
    CallLast call_last [L, H, H] "drop frame; pc = label; arity";
    CallOnly call_only [L, H] "pc = label; arity";
    CallExt call_ext [Q, H] "*e = next; pc = export.address; arity";
    CallExtLast call_ext_last [Q, H, H] "drop frame; pc = export.address; arity";
    CallExtOnly call_ext_only [Q, H] "pc = export.address; arity";
    MoveCall move_call [V, L, H] "move to x0; call";
    MoveCallLast move_call_last [V, L, H, H] "move to x0; call_last";
    MoveCallOnly move_call_only [V, L, H] "move to x0; call_only";
    MoveCallExt move_call_ext [V, Q, H] "move to x0; call_ext";
    MoveCallExtLast move_call_ext_last [V, Q, H, H] "move to x0; call_ext_last";
    MoveCallExtOnly move_call_ext_only [V, Q, H] "move to x0; call_ext_only";
    MoveReturn move_return [V] "move to x0; return";
    MoveDeallocate move_deallocate [V, H] "move to x0; deallocate";
    MoveDeallocateReturn move_deallocate_return [V, H] "move to x0; deallocate; return";
    DeallocateReturn deallocate_return [H] "deallocate; return";
    MoveJump move_jump [V, R, L] "move; jump";
    AllocateMove allocate_move [H, H, R, R] "allocate; move";
    AllocateGetList allocate_get_list [H, H, R, R, R] "allocate; get_list";
    CallBif call_bif [Q, Q, H] "x0 = native(x0…); export, function, arity";
    CallBifLast call_bif_last [Q, Q, H, H] "drop frame; return native(x0…); what it traps to returns to the next op";
    CallBifOnly call_bif_only [Q, Q, H] "return native(x0…); what it traps to returns to the next op, if this isn't a stub";
    CallDirty call_dirty [Q, Q, H, H] "return native(x0…) on a dirty thread; export, function, arity, pool";
    CallFun call_fun [H] "call x[arity] with x0…";
    CallFun2 call_fun2 [H, S] "call fun with x0…";
    CallFunLast call_fun_last [H, H] "drop frame; call x[arity] with x0…";
    CallFun2Last call_fun2_last [H, S, H] "drop frame; call fun with x0…";
    Apply apply [H] "call x[n]:x[n+1] with x0…";
    ApplyLast apply_last [H, H] "drop frame; call x[n]:x[n+1]";
    IApply i_apply [] "tail call x0:x1 with arguments in list x2";
    IApplyLast i_apply_last [H] "drop frame; as i_apply";
    IApplyFunLast i_apply_fun_last [H] "drop frame; as i_apply_fun";
    Jump jump [L] "pc = label";
    FuncInfo func_info [Q, Q, H] "raise function_clause: module, function, arity";
    ErrorHandler error_handler [Q] "call error_handler:undefined_function for export";
    ProcessExit process_exit [] "the process ends, reason normal";
    Nif nif [] "a native library may replace the function from here";
    IApplyFun i_apply_fun [] "tail call fun x0 with arguments in list x1";
    Breakpoint breakpoint [] "the function that starts here is traced; the operands are of the op that was replaced";
    ReturnTrace return_trace [] "a traced call has returned: tell it; drop its frame; return";
    ReturnTime return_time [] "a call that is measured has returned: note it; drop its frame; return";
    Yield yield_ [H] "time slice ends; live";
    Hibernate hibernate [] "drop stack, shrink heap, then as hibernated";
    Hibernated hibernated [] "wait for a message, then tail call x0:x1 with arguments in list x2";
    // Lists and tuples.
    GetList get_list [R, R, R] "hd, tl = src";
    IsNonemptyGetList is_nonempty_get_list [L, R, R, R] "else jump; hd, tl = src";
    TestHeapPutList test_heap_put_list [H, V, V, R] "room for two words; live; dst = [hd | tl]";
    GetHd get_hd [R, R] "dst = hd(src)";
    GetTl get_tl [R, R] "dst = tl(src)";
    PutList put_list [V, V, R] "dst = [hd | tl]";
    GetTupleElement get_tuple_element [R, H, R] "dst = word of tuple at byte offset";
    GetTupleElements2 get_tuple_elements_2 [R, H, R, R] "two neighbouring elements";
    GetTupleElementFar get_tuple_element_far [R, R, W] "dst = word of tuple at byte offset, for offsets over 16 bits";
    SetTupleElement set_tuple_element [S, S, W] "tuple word at byte offset = src";
    PutTuple put_tuple [R, W, List] "dst = {list}";
    PutTuple2 put_tuple_2 [V, V, R] "dst = {a, b}";
    PutTuple3 put_tuple_3 [V, V, V, R] "dst = {a, b, c}";
    UpdateRecord update_record [S, D, W, W, List] "dst = copy of tuple of size; count of (index, value) pairs";
    // Tests.
    IsLt is_lt [L, V, V] "else jump";
    IsGe is_ge [L, V, V] "else jump";
    IsInRange is_in_range [L, R, Q, Q] "else jump; between two small integers, which count";
    IsEq is_eq [L, V, V] "else jump";
    IsNe is_ne [L, V, V] "else jump";
    IsEqExact is_eq_exact [L, V, V] "else jump";
    IsNeExact is_ne_exact [L, V, V] "else jump";
    IsEqImmed is_eq_immed [L, R, Q] "else jump; an immediate";
    IsNeImmed is_ne_immed [L, R, Q] "else jump; an immediate";
    IsInteger is_integer [L, R] "else jump";
    IsFloat is_float [L, R] "else jump";
    IsNumber is_number [L, R] "else jump";
    IsAtom is_atom [L, R] "else jump";
    IsPid is_pid [L, R] "else jump";
    IsReference is_reference [L, R] "else jump";
    IsPort is_port [L, R] "else jump";
    IsNil is_nil [L, R] "else jump";
    IsBinary is_binary [L, R] "else jump";
    IsBitstr is_bitstr [L, R] "else jump";
    IsList is_list [L, R] "else jump";
    IsNonemptyList is_nonempty_list [L, R] "else jump";
    IsTuple is_tuple [L, R] "else jump";
    IsTupleOfArity is_tuple_of_arity [L, R, Q] "else jump; header word";
    TestArity test_arity [L, R, Q] "else jump; header word of what is a tuple";
    IsTaggedTuple is_tagged_tuple [L, R, Q, Q] "else jump; header word, atom";
    IsFunction is_function [L, R] "else jump";
    IsFunction2 is_function2 [L, S, S] "else jump";
    IsBoolean is_boolean [L, R] "else jump";
    IsMap is_map [L, R] "else jump";
    SelectVal select_val [R, L, W, List] "search the sorted immediates; n values, then n label offsets";
    SelectLinear select_linear [S, L, W, List] "compare with each: value, label pairs";
    JumpTable jump_table [R, L, Q, W, List] "index by small minus first; n label offsets, 0 for the label";
    SelectArity select_arity [R, L, W, List] "search the headers in order: header, label pairs";
    TypeSwitch type_switch [R, W, List] "jump by the type: count, label offset of each class of terms";
    // Arithmetic and natives in bodies and guards.
    Add add [L, V, V, R, H] "dst = a + b; live";
    Sub sub [L, V, V, R, H] "dst = a - b; live";
    AddCallOnly add_call_only [L, V, V, R, L, H] "add, which has no label; call_only";
    SubCallOnly sub_call_only [L, V, V, R, L, H] "sub, likewise; call_only";
    Mul mul [L, V, V, R, H] "dst = a * b; live";
    IntDiv int_div [L, V, V, R, H] "dst = a div b; live";
    Rem rem_ [L, V, V, R, H] "dst = a rem b; live";
    Band band [L, V, V, R, H] "dst = a band b; live";
    Bor bor [L, V, V, R, H] "dst = a bor b; live";
    Bxor bxor [L, V, V, R, H] "dst = a bxor b; live";
    Bsl bsl [L, V, V, R, H] "dst = a bsl b; live";
    Bsr bsr [L, V, V, R, H] "dst = a bsr b; live";
    Arith arith [L, S, S, D, H, H] "dst = a op b; number of the operation, live";
    FastElement fast_element [R, H, R] "dst = word of tuple at byte offset, and over bif2; into it if it isn't there";
    FastHd fast_hd [R, R] "dst = hd(a), and over bif1; into it if there is none";
    FastTl fast_tl [R, R] "dst = tl(a), likewise";
    FastTupleSize fast_tuple_size [R, R] "dst = tuple_size(a), likewise";
    FastByteSize fast_byte_size [R, R] "dst = byte_size(a), likewise";
    FastMapSize fast_map_size [R, R] "dst = map_size(a), likewise";
    FastLength fast_length [R, R] "dst = length(a), likewise";
    FastSetelement fast_setelement [] "x0 = setelement(x0, x1, x2), and over call_bif; into it if that fails";
    Bif0 bif0 [Q, D] "dst = native()";
    Bif1 bif1 [L, Q, S, D, Q, H] "dst = native(a); export, live";
    Bif2 bif2 [L, Q, S, S, D, Q, H] "dst = native(a, b); export, live";
    Bif3 bif3 [L, Q, S, S, S, D, Q, H] "dst = native(a, b, c); export, live";
    // Exceptions.
    Catch catch [R, L] "open a catch or try";
    CatchEnd catch_end [R] "close a catch";
    TryEnd try_end [R] "close a try";
    TryCase try_case [R] "x0, x1, x2 = class, reason, trace";
    Badmatch badmatch [S] "raise {badmatch, v}";
    CaseEnd case_end [S] "raise {case_clause, v}";
    TryCaseEnd try_case_end [S] "raise {try_clause, v}";
    IfEnd if_end [] "raise if_clause";
    Badrecord badrecord [S] "raise {badrecord, v}";
    Raise raise [S, S] "raise again: trace, value";
    RawRaise raw_raise [] "raise class x0, reason x1, trace x2";
    BuildStacktrace build_stacktrace [] "x0 = list form of x0";
    SystemLimit system_limit [] "raise system_limit";
    // Funs.
    MakeFun make_fun [Q, D, H, List] "dst = fun of entry with environment";
    // Messages.
    Send send [] "x0 ! x1";
    LoopRec loop_rec [L, D] "dst = current message, else jump";
    LoopRecEnd loop_rec_end [L] "go on to the next message";
    RemoveMessage remove_message [] "take the current message out";
    Wait wait [L] "wait for a message";
    WaitTimeout wait_timeout [L, S] "wait for a message or a time";
    Timeout timeout [] "the receive ends";
    RecvMarkerReserve recv_marker_reserve [D] "dst = marker";
    RecvMarkerBind recv_marker_bind [S, S] "marker, reference";
    RecvMarkerClear recv_marker_clear [S] "reference";
    RecvMarkerUse recv_marker_use [S] "reference";
    // Floats.
    FLoad fload [S, H] "fr = float or number";
    FConv fconv [S, H] "fr = number";
    FStore fstore [H, D] "dst = boxed fr";
    FMove fmove [H, H] "fr = fr";
    FAdd fadd [H, H, H] "fr = a + b";
    FSub fsub [H, H, H] "fr = a - b";
    FMul fmul [H, H, H] "fr = a * b";
    FDiv fdiv [H, H, H] "fr = a / b";
    FNegate fnegate [H, H] "fr = -a";
    // Maps.
    PutMapAssoc put_map_assoc [L, S, D, H, W, List] "dst = map with pairs; live, words of list";
    PutMapExact put_map_exact [L, S, D, H, W, List] "dst = map with existing keys updated";
    HasMapFields has_map_fields [L, S, W, List] "else jump";
    GetMapElements get_map_elements [L, S, W, List] "read key, register pairs, else jump";
    // Bit syntax: matching.
    BsStartMatch bs_start_match [L, S, D, H, H] "dst = match context; live, save slots";
    BsContext bs_context [L, R, H] "bs_start_match of a register into itself, without save slots; live";
    BsContextPosition bs_context_position [R, R, H] "bs_context of what is a bit string; its position; live";
    BsGetByte bs_get_byte [L, R, R] "context, dst: 8 bits without a sign";
    BsNextByte bs_next_byte [L, R, R, H] "bs_context of what is a bit string; bs_get_byte; live";
    BsNextByteTable bs_next_byte_table [L, R, R, H, L, Q, W, List] "bs_next_byte; jump_table of its result";
    BsNextBytePosition bs_next_byte_position [L, R, R, R, H] "bs_context_position; bs_get_byte; live";
    BsGetInteger bs_get_integer [L, S, S, W, H, D, H] "context, size, unit, flags, dst, live";
    BsGetSmall bs_get_small [L, R, H, H, R] "context, 1 to 56 bits, flags, dst";
    BsSkipFixed bs_skip_fixed [L, R, W] "context, bits";
    BsGetFloat bs_get_float [L, S, S, W, H, D, H] "context, size, unit, flags, dst, live";
    BsGetBinary bs_get_binary [L, S, S, W, H, D, H] "context, size (atom all: rest), unit, flags, dst, live";
    BsSkipBits bs_skip_bits [L, S, S, W] "context, size, unit";
    BsTestTail bs_test_tail [L, S, Q] "exactly so many bits left";
    BsTestUnit bs_test_unit [L, S, W] "bits left are a multiple";
    BsMatchString bs_match_string [L, S, W, Q] "bits, address";
    BsGetUtf bs_get_utf [L, S, H, H, D] "context, 8 16 or 32, flags";
    BsSkipUtf bs_skip_utf [L, S, H, H] "context, 8 16 or 32, flags";
    BsGetTail bs_get_tail [S, D, H] "dst = rest as bitstring; live";
    BsGetPosition bs_get_position [S, D, H] "dst = offset";
    BsSetPosition bs_set_position [S, S] "offset = src";
    BsMatch bs_match [L, S, W, List] "match commands";
    BsContextToBinary bs_context_to_binary [S] "match context becomes a bitstring again";
    BsSave bs_save [S, H] "note position in a slot";
    BsRestore bs_restore [S, H] "back to a slot's position";
    // Bit syntax: construction.
    BsCreateBin bs_create_bin [L, D, W, H, W, List] "dst = segments; heap words, live, words of list";
    BsInit bs_init [L, S, W, H, H, D] "start: size, heap words, live, unit 1 or 8";
    BsAppend bs_append [L, S, W, H, W, S, D] "start behind a binary: extra size, heap, live, unit, binary";
    BsPrivateAppend bs_private_append [L, S, W, S, D] "start behind a binary nobody else holds";
    BsPutInteger bs_put_integer [L, S, W, H, S] "size, unit, flags, value";
    BsPutFloat bs_put_float [L, S, W, H, S] "size, unit, flags, value";
    BsPutBinary bs_put_binary [L, S, W, H, S] "size (atom all: everything), unit, flags, value";
    BsPutString bs_put_string [W, Q] "bytes, address";
    BsPutUtf bs_put_utf [L, H, H, S] "8 16 or 32, flags, value";
    BsUtfSize bs_utf_size [L, H, S, D] "bytes of a character: 8 or 16";
    BsAdd bs_add [L, S, S, W, D] "dst = a + b * unit";
    BsInitWritable bs_init_writable [] "x0 = empty writable binary of x0 bytes";
}

const fn count() -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < OPS.len() {
        n += OPS[i].variants();
        i += 1;
    }
    n
}

/// Variants of all ops.
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

/// Number of the first variant of each op.
pub const BASE: [u16; OPS.len()] = bases();

impl Op {
    /// The row.
    pub const fn row(self) -> &'static SpecOp {
        &OPS[self as usize]
    }
    /// Number of the variant with those forms; `None` where the row doesn't allow them.
    pub fn variant(self, forms: &[Form]) -> Option<u16> {
        let row = self.row();
        if forms.len() != row.fixed() {
            return None;
        }
        let mut v = 0;
        for (o, f) in row.operands.iter().zip(forms) {
            let all = o.forms();
            v = v * all.len() + all.iter().position(|a| a == f)?;
        }
        Some(BASE[self as usize] + v as u16)
    }
}

/// Row and variant within the row of a variant number.
pub fn lookup(number: u16) -> Option<(&'static SpecOp, usize)> {
    if number as usize >= VARIANTS {
        return None;
    }
    let i = BASE.partition_point(|&b| b <= number) - 1;
    Some((&OPS[i], (number - BASE[i]) as usize))
}

/// Words of an instruction with those forms, without its list.
pub fn words(forms: &[Form]) -> usize {
    (1 + forms.iter().map(|f| f.units()).sum::<usize>()).div_ceil(4)
}

/// Pools in `call_dirty`.
pub mod dirty {
    pub const IO: u16 = 0;
    pub const CPU: u16 = 1;
}

/// Numbers of the operations of `arith`.
pub mod arith {
    /// Erlang name and arity of each; the index is the number.
    pub const OPS: &[(&str, u8)] = &[
        ("+", 2),
        ("-", 2),
        ("*", 2),
        ("div", 2),
        ("rem", 2),
        ("band", 2),
        ("bor", 2),
        ("bxor", 2),
        ("bsl", 2),
        ("bsr", 2),
        ("-", 1),
    ];
    /// Negation of the second operand; the first is 0.
    pub const NEGATE: usize = 10;
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
            // SAFETY-free way back: compare through the forms.
            let again = (0..row.variants()).find(|&w| row.forms(w) == forms);
            assert_eq!(again, Some(v));
        }
    }
}
