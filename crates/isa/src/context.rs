//! The fields of a context that compiled code touches, as rows. The context is a type of crate
//! `native`, which the compiler does not know. The interpreter's crate fills in the offsets, from
//! the type itself.

/// Number of places with a hint of their own about the index of a key in a flat map; a power of
/// two.
pub const KEY_HINTS: usize = 4096;

/// Where the table of return points is searched first for an address of bytecode: the address is
/// shifted right, multiplied, and shifted right again. The runtime and the stubs agree on it.
pub mod return_hash {
    /// Number of low bits that are 0 in each address.
    pub const ALIGNED_BITS: u8 = 3;
    /// Sign-extended to 64 bits.
    pub const FACTOR: i32 = 0x9E37_79B1_u32 as i32;
    /// Number of low bits of the product that are not used.
    pub const DROPPED_BITS: u8 = 12;
}

/// Calls `$m!` with every row: the name, the path of the field from the context, its meaning.
#[macro_export]
macro_rules! for_each_field {
    ($m:ident) => {
        $m! {
            proc = proc "the process that runs";
            window = heap.window "a byte: a message is looked at where it lies, and what is made may point into it";
            fr = fr "the float registers";
            htop = heap.htop "first free word of the heap";
            stop = heap.stop "top of the stack: slot 0 of the topmost frame";
            gc_wanted = heap.gc_wanted "a byte: a collection is wanted at the next op that may make one";
            reds = reds "reductions left, 64 bits signed";
            off_heap_bytes = heap.off_heap.bytes "bytes outside the heap to which its objects refer";
            vheap_bytes = heap.vheap_bytes "the number of those that makes a collection due";
            bif_pc = bif_pc "the instruction that may collect or fail, for the accounts";
            interp_pc = interp.pc "where to resume";
            interp_live = interp.live "number of X registers that hold terms there";
            interp_exit = interp.exit "a byte: why code stopped running";
            running = running "where the mark of the running function is written, for `perf`";
            machine_base = machine_base "the machine's stack pointer at entry to machine code";
            returns = returns "address of the table of return points";
            key_hints = key_hints "`KEY_HINTS` bytes, one for each key lookup in flat maps: the index of the last key found";
            chaos = chaos "instructions until code exits at random, in chaos mode, 64 bits signed";
        }
    };
}

macro_rules! fields {
    ($( $name:ident = $($path:ident).+ $doc:literal; )*) => {
        /// Offsets in bytes from the address of the context, where the X registers begin.
        #[derive(Clone, Copy, Debug)]
        pub struct Fields { $(#[doc = $doc] pub $name: i32),* }
    };
}
for_each_field!(fields);

/// Words outside the context that compiled code, mostly that of receives, reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Mail {
    /// Bytes from the address of a process: the address of its mailbox, or 0.
    pub mailbox: i32,
    /// Bytes from the address of a process: the data of its pid, 32 bits.
    pub pid: i32,
    /// Bytes from the address of a mailbox: the link to the first message.
    pub first: i32,
    /// The address of the link to the current message. That link holds 0 behind the last one.
    pub save: i32,
    /// 0, or the top of the heap when the current message had been copied there.
    pub copied_end: i32,
    /// 64 bits: messages that are no terms yet.
    pub undecoded: i32,
    /// A byte: whether `save` was taken from a marker, and what it leads to was not looked at.
    pub at_marker: i32,
    /// A byte: number of messages that the receive's first test is not applied to beforehand.
    pub unfiltered: i32,
    /// Bytes from the address of a message, whose first word is the link to the next one: its term.
    pub term: i32,
}
