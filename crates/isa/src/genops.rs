//! The generic instruction set: the instructions that the compilers of OTP 21 to 29 write into the
//! `Code` chunk.
//!
//! There is one row per opcode, in order of number: number, constant, name and the kind of each
//! operand. The arity is the number of kinds. Everything else here (constants, names, arities)
//! derives from the rows. The kinds say what the loader checks about an operand before any code may
//! act on it.
//!
//! The facts come from OTP's `genop.tab` (1 to 180) and from the opcode table of OTP 29 (181 to
//! 191). Opcodes that no compiler since OTP 21 emits are `Gone`. They keep their rows, so that a
//! file that contains one can be distinguished from a damaged file.

/// The forms that an operand may have, with the properties that the loader has checked once the
/// code is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The number of a label that is defined here.
    Def,
    /// A label, or 0 for "raise instead of jumping".
    Fail,
    /// A label, never 0.
    Target,
    /// A label, or an atom in its place (`bs_start_match4`).
    FailOrAtom,
    /// The entry label of a function of this module.
    Func,
    /// An index of the import table.
    Import,
    /// An index of the lambda table.
    Lambda,
    /// An index of the line table; 0 says "unknown".
    Line,
    /// An offset in the string table. The length is the operand before it.
    StrOff,
    /// Number of arguments, 0 to 255.
    Arity,
    /// How many X registers hold live terms, 0 to 1024.
    Live,
    /// A number of Y registers, 0 to 1024.
    Frame,
    /// An unsigned number.
    U,
    /// Flags of a bit syntax segment, as an unsigned number.
    Flags,
    /// Heap to reserve: words, and optionally floats and funs.
    Alloc,
    /// The size of a bitstring: unsigned number (of any length), or a source.
    Size,
    /// Register or constant.
    Src,
    /// X or Y register that is read.
    Reg,
    /// X or Y register that is written.
    Dst,
    /// Y register.
    Y,
    /// Float register.
    FReg,
    /// Float register, or a source that holds a boxed float.
    FSrc,
    /// Float register, or a register that gets a boxed float.
    FDst,
    /// An atom.
    Atom,
    /// The atom `safe` or `unsafe`, or an index of the lambda table (`call_fun2`).
    Tag,
    /// Any simple operand.
    Any,
    /// List of sources.
    SrcList,
    /// List of pairs: source, source.
    PairList,
    /// List of pairs: source (key), register (value).
    FetchList,
    /// List of pairs: constant, label.
    ValueList,
    /// List of pairs: tuple size, label.
    ArityList,
    /// List of pairs: element number from 1, source.
    UpdateList,
    /// List of sources that a fun captures; as long as the lambda table says.
    EnvList,
    /// List of Y registers.
    YList,
    /// List of segments of six: type, number, unit, flags, value, size.
    SegList,
    /// List of match commands, each an atom with its operands.
    CommandList,
}

impl Kind {
    /// Whether the operand is an extended list, which only the last operand may be.
    pub const fn is_list(self) -> bool {
        (self as u8) >= Kind::SrcList as u8
    }
}

/// Whether a compiler of OTP 21 or later emits the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Live,
    Gone,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct GenOp {
    pub number: u8,
    pub name: &'static str,
    pub kinds: &'static [Kind],
    pub status: Status,
    /// The effect of the instruction, in a line.
    pub doc: &'static str,
}

macro_rules! generic_ops {
    ($( #[doc = $doc:literal] $number:literal $constant:ident $name:tt [$($kind:ident),*] $status:ident; )*) => {
        $( #[doc = $doc] pub const $constant: u8 = $number; )*

        /// The rows; the one of opcode `n` is at index `n - 1`.
        pub static ROWS: &[GenOp] = &ROWS_CONST;
        const ROWS_CONST: [GenOp; MAX as usize] = [$(GenOp {
            number: $number,
            name: stringify!($name),
            kinds: &[$(Kind::$kind),*],
            status: Status::$status,
            doc: $doc.trim_ascii_start(),
        }),*];
    };
}

/// The highest generic opcode.
pub const MAX: u8 = 191;

generic_ops! {
    /// Names this place in the code; every jump and call goes to such a number.
    1 LABEL label [Def] Live;
    /// Heads a function (module, name, arity); running it raises function_clause.
    2 FUNC_INFO func_info [Atom, Atom, Arity] Live;
    /// Ends the code chunk.
    3 INT_CODE_END int_code_end [] Live;
    /// Calls a function of this module; the next instruction is where it returns to.
    4 CALL call [Arity, Func] Live;
    /// Drops the stack frame, then tail-calls a function of this module.
    5 CALL_LAST call_last [Arity, Func, U] Live;
    /// Tail-calls a function of this module where there is no frame.
    6 CALL_ONLY call_only [Arity, Func] Live;
    /// Calls an imported function.
    7 CALL_EXT call_ext [Arity, Import] Live;
    /// Drops the stack frame, then tail-calls an imported function.
    8 CALL_EXT_LAST call_ext_last [Arity, Import, U] Live;
    /// Calls a native without arguments that can't fail.
    9 BIF0 bif0 [Import, Dst] Live;
    /// Calls a native of one argument that doesn't allocate on the heap.
    10 BIF1 bif1 [Fail, Import, Src, Dst] Live;
    /// Calls a native of two arguments that doesn't allocate on the heap.
    11 BIF2 bif2 [Fail, Import, Src, Src, Dst] Live;
    /// Makes a stack frame of that many Y registers.
    12 ALLOCATE allocate [Frame, Live] Live;
    /// Makes a stack frame and reserves heap.
    13 ALLOCATE_HEAP allocate_heap [Frame, Alloc, Live] Live;
    /// Makes a stack frame whose Y registers are cleared.
    14 ALLOCATE_ZERO allocate_zero [Frame, Live] Live;
    /// Makes a cleared stack frame and reserves heap.
    15 ALLOCATE_HEAP_ZERO allocate_heap_zero [Frame, Alloc, Live] Live;
    /// Reserves heap, collecting if there is too little.
    16 TEST_HEAP test_heap [Alloc, Live] Live;
    /// Clears one Y register.
    17 INIT init [Y] Live;
    /// Drops the stack frame.
    18 DEALLOCATE deallocate [Frame] Live;
    /// Returns to the caller with the result in X0.
    19 RETURN return [] Live;
    /// Sends X1 to X0; the message is left in X0.
    20 SEND send [] Live;
    /// Takes the current message out of the mailbox.
    21 REMOVE_MESSAGE remove_message [] Live;
    /// Ends a receive whose time ran out.
    22 TIMEOUT timeout [] Live;
    /// Looks at the next message, or jumps to the wait.
    23 LOOP_REC loop_rec [Fail, Dst] Live;
    /// Goes on to the next message.
    24 LOOP_REC_END loop_rec_end [Target] Live;
    /// Waits for a message without limit.
    25 WAIT wait [Target] Live;
    /// Waits for a message or for that many milliseconds.
    26 WAIT_TIMEOUT wait_timeout [Target, Src] Live;
    /// Addition of a time before guard natives did it.
    27 M_PLUS m_plus [Any, Any, Any, Any] Gone;
    /// Subtraction, long gone.
    28 M_MINUS m_minus [Any, Any, Any, Any] Gone;
    /// Multiplication, long gone.
    29 M_TIMES m_times [Any, Any, Any, Any] Gone;
    /// Division, long gone.
    30 M_DIV m_div [Any, Any, Any, Any] Gone;
    /// Integer division, long gone.
    31 INT_DIV int_div [Any, Any, Any, Any] Gone;
    /// Integer remainder, long gone.
    32 INT_REM int_rem [Any, Any, Any, Any] Gone;
    /// Bitwise and, long gone.
    33 INT_BAND int_band [Any, Any, Any, Any] Gone;
    /// Bitwise or, long gone.
    34 INT_BOR int_bor [Any, Any, Any, Any] Gone;
    /// Bitwise exclusive or, long gone.
    35 INT_BXOR int_bxor [Any, Any, Any, Any] Gone;
    /// Left shift, long gone.
    36 INT_BSL int_bsl [Any, Any, Any, Any] Gone;
    /// Arithmetic right shift, long gone.
    37 INT_BSR int_bsr [Any, Any, Any, Any] Gone;
    /// Bitwise not, long gone.
    38 INT_BNOT int_bnot [Any, Any, Any] Gone;
    /// Jumps unless the first is less than the second.
    39 IS_LT is_lt [Fail, Src, Src] Live;
    /// Jumps unless the first is greater than or equal to the second.
    40 IS_GE is_ge [Fail, Src, Src] Live;
    /// Jumps unless the two are equal as numbers (`==`).
    41 IS_EQ is_eq [Fail, Src, Src] Live;
    /// Jumps if the two are equal as numbers.
    42 IS_NE is_ne [Fail, Src, Src] Live;
    /// Jumps unless the two are the same term (`=:=`).
    43 IS_EQ_EXACT is_eq_exact [Fail, Src, Src] Live;
    /// Jumps if the two are the same term.
    44 IS_NE_EXACT is_ne_exact [Fail, Src, Src] Live;
    /// Jumps unless an integer.
    45 IS_INTEGER is_integer [Fail, Src] Live;
    /// Jumps unless a float.
    46 IS_FLOAT is_float [Fail, Src] Live;
    /// Jumps unless a number.
    47 IS_NUMBER is_number [Fail, Src] Live;
    /// Jumps unless an atom.
    48 IS_ATOM is_atom [Fail, Src] Live;
    /// Jumps unless a process identifier.
    49 IS_PID is_pid [Fail, Src] Live;
    /// Jumps unless a reference.
    50 IS_REFERENCE is_reference [Fail, Src] Live;
    /// Jumps unless a port.
    51 IS_PORT is_port [Fail, Src] Live;
    /// Jumps unless the empty list.
    52 IS_NIL is_nil [Fail, Src] Live;
    /// Jumps unless a binary of whole bytes.
    53 IS_BINARY is_binary [Fail, Src] Live;
    /// Type test that left the language.
    54 IS_CONSTANT is_constant [Any, Any] Gone;
    /// Jumps unless a cons or the empty list.
    55 IS_LIST is_list [Fail, Src] Live;
    /// Jumps unless a cons.
    56 IS_NONEMPTY_LIST is_nonempty_list [Fail, Src] Live;
    /// Jumps unless a tuple.
    57 IS_TUPLE is_tuple [Fail, Src] Live;
    /// Jumps unless the tuple has that size.
    58 TEST_ARITY test_arity [Fail, Src, U] Live;
    /// Jumps by value to one of many labels.
    59 SELECT_VAL select_val [Src, Fail, ValueList] Live;
    /// Jumps by tuple size to one of many labels.
    60 SELECT_TUPLE_ARITY select_tuple_arity [Src, Fail, ArityList] Live;
    /// Jumps.
    61 JUMP jump [Target] Live;
    /// Opens an old-style catch, its mark in a Y register.
    62 CATCH catch [Y, Target] Live;
    /// Closes a catch, or turns the exception into a value.
    63 CATCH_END catch_end [Y] Live;
    /// Copies a value to a register.
    64 MOVE move [Src, Dst] Live;
    /// Takes a cons apart.
    65 GET_LIST get_list [Reg, Dst, Dst] Live;
    /// Takes an element, counted from 0, out of a tuple.
    66 GET_TUPLE_ELEMENT get_tuple_element [Reg, U, Dst] Live;
    /// Overwrites an element of a tuple that is not shared yet.
    67 SET_TUPLE_ELEMENT set_tuple_element [Src, Reg, U] Live;
    /// Built a string from the string table.
    68 PUT_STRING put_string [Any, Any, Any] Gone;
    /// Builds a cons on reserved heap.
    69 PUT_LIST put_list [Src, Src, Dst] Live;
    /// Starts a tuple whose elements follow in `put` instructions (up to OTP 21).
    70 PUT_TUPLE put_tuple [U, Dst] Live;
    /// One element of the tuple started by `put_tuple`.
    71 PUT put [Src] Live;
    /// Raises {badmatch, V}.
    72 BADMATCH badmatch [Src] Live;
    /// Raises if_clause.
    73 IF_END if_end [] Live;
    /// Raises {case_clause, V}.
    74 CASE_END case_end [Src] Live;
    /// Calls the fun in the X register after the arguments.
    75 CALL_FUN call_fun [Arity] Live;
    /// Made a fun before the lambda table.
    76 MAKE_FUN make_fun [Any, Any, Any] Gone;
    /// Jumps unless a fun.
    77 IS_FUNCTION is_function [Fail, Src] Live;
    /// Tail-calls an imported function where there is no frame.
    78 CALL_EXT_ONLY call_ext_only [Arity, Import] Live;
    /// First bit syntax, gone.
    79 BS_START_MATCH bs_start_match [Any, Any] Gone;
    /// First bit syntax, gone.
    80 BS_GET_INTEGER bs_get_integer [Any, Any, Any, Any, Any] Gone;
    /// First bit syntax, gone.
    81 BS_GET_FLOAT bs_get_float [Any, Any, Any, Any, Any] Gone;
    /// First bit syntax, gone.
    82 BS_GET_BINARY bs_get_binary [Any, Any, Any, Any, Any] Gone;
    /// First bit syntax, gone.
    83 BS_SKIP_BITS bs_skip_bits [Any, Any, Any, Any] Gone;
    /// First bit syntax, gone.
    84 BS_TEST_TAIL bs_test_tail [Any, Any] Gone;
    /// First bit syntax, gone.
    85 BS_SAVE bs_save [Any] Gone;
    /// First bit syntax, gone.
    86 BS_RESTORE bs_restore [Any] Gone;
    /// First bit syntax, gone.
    87 BS_INIT bs_init [Any, Any] Gone;
    /// First bit syntax, gone.
    88 BS_FINAL bs_final [Any, Any] Gone;
    /// Appends an integer to the binary under construction (up to OTP 24).
    89 BS_PUT_INTEGER bs_put_integer [Fail, Src, U, Flags, Src] Live;
    /// Appends a bitstring to the binary under construction (up to OTP 24).
    90 BS_PUT_BINARY bs_put_binary [Fail, Src, U, Flags, Src] Live;
    /// Appends a float to the binary under construction (up to OTP 24).
    91 BS_PUT_FLOAT bs_put_float [Fail, Src, U, Flags, Src] Live;
    /// Appends bytes of the string table to the binary under construction (up to OTP 24).
    92 BS_PUT_STRING bs_put_string [U, StrOff] Live;
    /// First bit syntax, gone.
    93 BS_NEED_BUF bs_need_buf [Any] Gone;
    /// Forgets an earlier floating-point fault; without effect today.
    94 FCLEARERROR fclearerror [] Live;
    /// Raises a floating-point fault noted earlier; without effect today.
    95 FCHECKERROR fcheckerror [Fail] Live;
    /// Moves between a float register and a boxed float.
    96 FMOVE fmove [FSrc, FDst] Live;
    /// Turns a number into a float register.
    97 FCONV fconv [Src, FReg] Live;
    /// Adds floats.
    98 FADD fadd [Fail, FReg, FReg, FReg] Live;
    /// Subtracts floats.
    99 FSUB fsub [Fail, FReg, FReg, FReg] Live;
    /// Multiplies floats.
    100 FMUL fmul [Fail, FReg, FReg, FReg] Live;
    /// Divides floats.
    101 FDIV fdiv [Fail, FReg, FReg, FReg] Live;
    /// Negates a float.
    102 FNEGATE fnegate [Fail, FReg, FReg] Live;
    /// Makes a fun of the X registers (up to OTP 23).
    103 MAKE_FUN2 make_fun2 [Lambda] Live;
    /// Opens a try, its mark in a Y register.
    104 TRY try [Y, Target] Live;
    /// Closes a try that raised nothing.
    105 TRY_END try_end [Y] Live;
    /// Closes a try that raised; class, reason and trace are in X0, X1, X2.
    106 TRY_CASE try_case [Y] Live;
    /// Raises {try_clause, V}.
    107 TRY_CASE_END try_case_end [Src] Live;
    /// Raises again: trace, then reason.
    108 RAISE raise [Src, Src] Live;
    /// Starts a binary of a size in bytes (up to OTP 24).
    109 BS_INIT2 bs_init2 [Fail, Size, Alloc, Live, Flags, Dst] Live;
    /// First bit syntax, gone.
    110 BS_BITS_TO_BYTES bs_bits_to_bytes [Any, Any, Any] Gone;
    /// Adds a size times a unit to a size (up to OTP 24).
    111 BS_ADD bs_add [Fail, Src, Src, U, Dst] Live;
    /// Calls a function whose module and name are in the registers after the arguments.
    112 APPLY apply [Arity] Live;
    /// Drops the stack frame, then tail-applies.
    113 APPLY_LAST apply_last [Arity, U] Live;
    /// Jumps unless true or false.
    114 IS_BOOLEAN is_boolean [Fail, Src] Live;
    /// Jumps unless a fun of that arity.
    115 IS_FUNCTION2 is_function2 [Fail, Src, Src] Live;
    /// Starts matching a bitstring (up to OTP 21).
    116 BS_START_MATCH2 bs_start_match2 [Fail, Src, Live, U, Dst] Live;
    /// Matches an integer.
    117 BS_GET_INTEGER2 bs_get_integer2 [Fail, Reg, Live, Src, U, Flags, Dst] Live;
    /// Matches a float.
    118 BS_GET_FLOAT2 bs_get_float2 [Fail, Reg, Live, Src, U, Flags, Dst] Live;
    /// Matches a bitstring.
    119 BS_GET_BINARY2 bs_get_binary2 [Fail, Reg, Live, Src, U, Flags, Dst] Live;
    /// Skips bits of the matched bitstring.
    120 BS_SKIP_BITS2 bs_skip_bits2 [Fail, Reg, Src, U, Flags] Live;
    /// Jumps unless exactly that many bits are left.
    121 BS_TEST_TAIL2 bs_test_tail2 [Fail, Reg, Size] Live;
    /// Notes the position of a match context (up to OTP 21).
    122 BS_SAVE2 bs_save2 [Reg, Any] Live;
    /// Goes back to a noted position (up to OTP 21).
    123 BS_RESTORE2 bs_restore2 [Reg, Any] Live;
    /// Calls a guard native of one argument that may collect.
    124 GC_BIF1 gc_bif1 [Fail, Live, Import, Src, Dst] Live;
    /// Calls a guard native of two arguments that may collect.
    125 GC_BIF2 gc_bif2 [Fail, Live, Import, Src, Src, Dst] Live;
    /// Gone.
    126 BS_FINAL2 bs_final2 [Any, Any] Gone;
    /// Gone.
    127 BS_BITS_TO_BYTES2 bs_bits_to_bytes2 [Any, Any] Gone;
    /// Gone.
    128 PUT_LITERAL put_literal [Any, Any] Gone;
    /// Jumps unless a bitstring.
    129 IS_BITSTR is_bitstr [Fail, Src] Live;
    /// Turns a match context back into a bitstring (up to OTP 21).
    130 BS_CONTEXT_TO_BINARY bs_context_to_binary [Reg] Live;
    /// Jumps unless the bits left are a multiple of the unit.
    131 BS_TEST_UNIT bs_test_unit [Fail, Reg, U] Live;
    /// Matches that many bits with those of the string table.
    132 BS_MATCH_STRING bs_match_string [Fail, Reg, U, StrOff] Live;
    /// Makes an empty binary with room to append to.
    133 BS_INIT_WRITABLE bs_init_writable [] Live;
    /// Starts a binary that appends to another (up to OTP 24).
    134 BS_APPEND bs_append [Fail, Size, Alloc, Live, U, Src, Flags, Dst] Live;
    /// Starts a binary that appends to one only we hold (up to OTP 24).
    135 BS_PRIVATE_APPEND bs_private_append [Fail, Size, U, Src, Flags, Dst] Live;
    /// Drops the first Y registers of a frame; the second number stays.
    136 TRIM trim [Frame, Frame] Live;
    /// Starts a bitstring of a size in bits (up to OTP 24).
    137 BS_INIT_BITS bs_init_bits [Fail, Size, Alloc, Live, Flags, Dst] Live;
    /// Matches a UTF-8 character.
    138 BS_GET_UTF8 bs_get_utf8 [Fail, Reg, Live, Flags, Dst] Live;
    /// Skips a UTF-8 character.
    139 BS_SKIP_UTF8 bs_skip_utf8 [Fail, Reg, Live, Flags] Live;
    /// Matches a UTF-16 character.
    140 BS_GET_UTF16 bs_get_utf16 [Fail, Reg, Live, Flags, Dst] Live;
    /// Skips a UTF-16 character.
    141 BS_SKIP_UTF16 bs_skip_utf16 [Fail, Reg, Live, Flags] Live;
    /// Matches a UTF-32 character.
    142 BS_GET_UTF32 bs_get_utf32 [Fail, Reg, Live, Flags, Dst] Live;
    /// Skips a UTF-32 character.
    143 BS_SKIP_UTF32 bs_skip_utf32 [Fail, Reg, Live, Flags] Live;
    /// Size in bytes of a character in UTF-8 (up to OTP 24).
    144 BS_UTF8_SIZE bs_utf8_size [Fail, Src, Dst] Live;
    /// Appends a character in UTF-8 (up to OTP 24).
    145 BS_PUT_UTF8 bs_put_utf8 [Fail, Flags, Src] Live;
    /// Size in bytes of a character in UTF-16 (up to OTP 24).
    146 BS_UTF16_SIZE bs_utf16_size [Fail, Src, Dst] Live;
    /// Appends a character in UTF-16 (up to OTP 24).
    147 BS_PUT_UTF16 bs_put_utf16 [Fail, Flags, Src] Live;
    /// Appends a character in UTF-32 (up to OTP 24).
    148 BS_PUT_UTF32 bs_put_utf32 [Fail, Flags, Src] Live;
    /// Marks the function that runs when the module is loaded.
    149 ON_LOAD on_load [] Live;
    /// Notes the end of the mailbox for a later receive (up to OTP 23).
    150 RECV_MARK recv_mark [Target] Live;
    /// Starts the receive at the noted place (up to OTP 23).
    151 RECV_SET recv_set [Target] Live;
    /// Calls a guard native of three arguments that may collect.
    152 GC_BIF3 gc_bif3 [Fail, Live, Import, Src, Src, Src, Dst] Live;
    /// Says which source line follows.
    153 LINE line [Line] Live;
    /// Adds or replaces associations (`=>`).
    154 PUT_MAP_ASSOC put_map_assoc [Fail, Src, Dst, Live, PairList] Live;
    /// Replaces associations that must exist (`:=`).
    155 PUT_MAP_EXACT put_map_exact [Fail, Src, Dst, Live, PairList] Live;
    /// Jumps unless a map.
    156 IS_MAP is_map [Fail, Src] Live;
    /// Jumps unless the map has all those keys.
    157 HAS_MAP_FIELDS has_map_fields [Fail, Src, SrcList] Live;
    /// Reads values by key, or jumps.
    158 GET_MAP_ELEMENTS get_map_elements [Fail, Src, FetchList] Live;
    /// Jumps unless a tuple of that size whose first element is that atom.
    159 IS_TAGGED_TUPLE is_tagged_tuple [Fail, Src, U, Atom] Live;
    /// Turns the raw trace in X0 into a list.
    160 BUILD_STACKTRACE build_stacktrace [] Live;
    /// Raises class X0, reason X1, raw trace X2.
    161 RAW_RAISE raw_raise [] Live;
    /// Head of a cons.
    162 GET_HD get_hd [Reg, Dst] Live;
    /// Tail of a cons.
    163 GET_TL get_tl [Reg, Dst] Live;
    /// Builds a tuple on reserved heap.
    164 PUT_TUPLE2 put_tuple2 [Dst, SrcList] Live;
    /// The rest of a match context as a bitstring.
    165 BS_GET_TAIL bs_get_tail [Reg, Dst, Live] Live;
    /// Starts matching a bitstring.
    166 BS_START_MATCH3 bs_start_match3 [Fail, Src, Live, Dst] Live;
    /// Reads the position of a match context.
    167 BS_GET_POSITION bs_get_position [Reg, Dst, Live] Live;
    /// Sets the position of a match context.
    168 BS_SET_POSITION bs_set_position [Reg, Src] Live;
    /// Exchanges two registers.
    169 SWAP swap [Dst, Dst] Live;
    /// Starts matching; the atom says that it can't fail or that it resumes.
    170 BS_START_MATCH4 bs_start_match4 [FailOrAtom, Live, Src, Dst] Live;
    /// Makes a fun of the listed free variables.
    171 MAKE_FUN3 make_fun3 [Lambda, Dst, EnvList] Live;
    /// Clears Y registers.
    172 INIT_YREGS init_yregs [YList] Live;
    /// Ties a receive marker to a reference.
    173 RECV_MARKER_BIND recv_marker_bind [Reg, Reg] Live;
    /// Forgets the receive marker of a reference.
    174 RECV_MARKER_CLEAR recv_marker_clear [Reg] Live;
    /// Notes the end of the mailbox.
    175 RECV_MARKER_RESERVE recv_marker_reserve [Dst] Live;
    /// Starts the receive at the marker of a reference.
    176 RECV_MARKER_USE recv_marker_use [Reg] Live;
    /// Builds a bitstring of segments in one go.
    177 BS_CREATE_BIN bs_create_bin [Fail, Alloc, Live, U, Dst, SegList] Live;
    /// Calls a fun; the tag says whether it is known to be one.
    178 CALL_FUN2 call_fun2 [Tag, Arity, Reg] Live;
    /// Marks a function that a native library replaces.
    179 NIF_START nif_start [] Live;
    /// Raises {badrecord, V}.
    180 BADRECORD badrecord [Src] Live;
    /// Copies a tuple with some elements replaced.
    181 UPDATE_RECORD update_record [Atom, U, Src, Dst, UpdateList] Live;
    /// Runs several match steps in one go.
    182 BS_MATCH bs_match [Fail, Reg, CommandList] Live;
    /// Counts an executed line when coverage is on.
    183 EXECUTABLE_LINE executable_line [Line, U] Live;
    /// A place where a debugger may stop.
    184 DEBUG_LINE debug_line [Any, Line, U, Live] Live;
    /// Calls a guard native of three arguments that doesn't collect.
    185 BIF3 bif3 [Fail, Import, Src, Src, Src, Dst] Live;
    /// Jumps unless a native record.
    186 IS_ANY_NATIVE_RECORD is_any_native_record [Fail, Src] Live;
    /// Jumps unless a native record of that module and name.
    187 IS_NATIVE_RECORD is_native_record [Fail, Src, Src, Src] Live;
    /// Reads fields of a native record by name.
    188 GET_RECORD_ELEMENTS get_record_elements [Fail, Src, FetchList] Live;
    /// Builds or updates a native record.
    189 PUT_RECORD put_record [Fail, Any, Src, Dst, Live, PairList] Live;
    /// Jumps unless the record's fields may be read from here.
    190 IS_RECORD_ACCESSIBLE is_record_accessible [Fail, Src, Src] Live;
    /// Reads one field of a native record.
    191 GET_RECORD_FIELD get_record_field [Fail, Src, Any, Src, Dst] Live;
}

// `ROWS[n - 1]` is used without a check of the number. So the rows must be dense and in order, and
// a list may only be the last operand.
const _: () = {
    let mut i = 0;
    while i < ROWS_CONST.len() {
        assert!(ROWS_CONST[i].number as usize == i + 1);
        let kinds = ROWS_CONST[i].kinds;
        assert!(kinds.len() <= MAX_ARITY);
        let mut k = 0;
        while k < kinds.len() {
            assert!(!kinds[k].is_list() || k + 1 == kinds.len());
            k += 1;
        }
        i += 1;
    }
};

/// Maximum number of operands of an instruction.
pub const MAX_ARITY: usize = 8;

/// Returns the row of an opcode; `None` for 0 and for numbers above [`MAX`].
pub fn row(op: u8) -> Option<&'static GenOp> {
    ROWS.get(usize::from(op).wrapping_sub(1))
}

/// Returns the name of an opcode as OTP spells it; `"?"` for an unknown number.
pub fn name(op: u8) -> &'static str {
    row(op).map_or("?", |r| r.name)
}

/// Returns the number of operands of an opcode, where an extended list counts as one.
pub fn arity(op: u8) -> Option<usize> {
    row(op).map(|r| r.kinds.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_answer_by_number() {
        let known = [
            (MOVE, "move", 2),
            (TRY, "try", 2),
            (BS_APPEND, "bs_append", 8),
            (BS_CREATE_BIN, "bs_create_bin", 6),
            (UPDATE_RECORD, "update_record", 5),
            (GET_RECORD_FIELD, "get_record_field", 5),
        ];
        for (op, op_name, op_arity) in known {
            assert_eq!((name(op), arity(op)), (op_name, Some(op_arity)));
        }
        assert_eq!((name(0), arity(0), arity(MAX + 1)), ("?", None, None));
    }
}
