//! Where the fields lie that compiled code touches in a context, in bytes from its start. The context is a type of crate `native`, which
//! the compiler doesn't know: the interpreter's crate fills this in from the type itself.

/// See the module head.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// X register 0; the others follow, 8 bytes each.
    pub x: u32,
    /// Float register 0; the others follow.
    pub fr: u32,
    /// First free word of the heap. There is room up to [`stop`](Fields::stop).
    pub htop: u32,
    /// Top of the stack: slot 0 of the topmost frame.
    pub stop: u32,
    /// Bottom of the stack, behind its last word.
    pub hend: u32,
    /// A byte: a collection is wanted at the next op that may make one.
    pub gc_wanted: u32,
    /// Words between heap and stack that only a return address may use.
    pub stack_reserve: u32,
    /// A byte: the process looks at a message that is not received yet.
    pub window: u32,
    /// Reductions left, 64 bits with a sign.
    pub reds: u32,
    /// The instruction whose work is charged for what is made, and whose address a native is called from.
    pub bif_pc: u32,
    /// Where to resume.
    pub pc: u32,
    /// X registers that hold terms there, 64 bits.
    pub live: u32,
    /// A byte: why the process leaves.
    pub exit: u32,
    /// The control block of the process.
    pub process: u32,
    /// A byte: whether this is a dirty thread.
    pub dirty: u32,
    /// The address of the word that holds the mark of the function that runs.
    pub running: u32,
}
