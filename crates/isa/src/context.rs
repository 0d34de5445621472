//! The fields of a context that compiled code touches, as rows. The context is a type of crate
//! `native`, which the compiler does not know. The interpreter's crate fills in the offsets, from
//! the type itself.

/// Number of places with a hint of their own about the index of a key in a flat map; a power of
/// two.
pub const KEY_HINTS: usize = 4096;

/// Calls `$m!` with every row: the name, the path of the field from the context, its meaning.
#[macro_export]
macro_rules! for_each_field {
    ($m:ident) => {
        $m! {
            fr = fr "the float registers";
            htop = heap.htop "first free word of the heap";
            stop = heap.stop "top of the stack: slot 0 of the topmost frame";
            gc_wanted = heap.gc_wanted "a byte: a collection is wanted at the next op that may make one";
            reds = reds "reductions left, 64 bits with a sign";
            off_heap_bytes = heap.off_heap.bytes "how many bytes outside the heap its objects refer to";
            vheap_bytes = heap.vheap_bytes "how many there may be before a collection";
            bif_pc = bif_pc "the instruction that may collect or fail, for the accounts";
            interp_pc = interp.pc "where to resume";
            interp_live = interp.live "how many X registers hold terms there";
            interp_exit = interp.exit "a byte: why code stopped to run";
            running = running "where the mark of the function that runs is written, for `perf`";
            machine_base = machine_base "the machine's stack pointer where compiled code was entered";
            returns = returns "address of the table of return points";
            key_hints = key_hints "a byte for each of `KEY_HINTS` places that look for a key in small maps: which key it was";
            chaos = chaos "instructions until code leaves by chance, 64 bits with a sign";
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
