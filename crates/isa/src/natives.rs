//! Properties of natives. They are columns in the rows of natives (`purlin_native::bif`), and
//! crates that know no natives read them.

/// A template that replaces a call of a native in machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Template {
    Abs,
    BitSize,
    DictionaryValue,
    Element,
    Divide,
    Not,
    And,
    Or,
    Xor,
    Min,
    Max,
    KeyFind,
    KeyMember,
    Member,
    /// `self/0`, which is compiled by the address of the native: its call has no export.
    OwnPid,
}

/// The shared state that a native reads or writes. Two calls by different processes race if they
/// touch the same state and one of them writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touches {
    /// The key in the second argument, in the table that the first argument names.
    Key,
    /// The key of the object in the second argument, in the table that the first argument names. A
    /// list of objects touches the whole table.
    Object,
    /// The whole table that the first argument names.
    Table,
    /// The process or registered name in the first argument.
    Process,
    /// The process or registered name in the second argument.
    SecondProcess,
    /// The name in the first argument.
    Name,
    /// The first argument itself: a reference of atomics or counters, a timer, a port, a socket, a
    /// key of persistent terms.
    Cell,
    /// The environment variable that the first argument names. Without arguments: the environment.
    Variable,
    /// The file name or open file in the first argument.
    File,
    /// State that can't be compared: the call is a scheduling point only.
    All,
}

/// How a native reaches the world outside the program, which no seed decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// It opens a file.
    Opened,
    /// It reads a file or a folder.
    Read,
    /// It writes to a file.
    Written,
    /// It makes, renames, changes or deletes a file or a folder.
    Changed,
    /// It opens a port: a program, a socket or another, by its first argument.
    Port,
    /// It opens a socket.
    Socket,
    /// It does something else with sockets or addresses.
    OnSocket,
    /// It connects with another node.
    Node,
    /// It asks for the operating-system process id.
    Number,
    /// It looks at a variable of the environment.
    Variable,
}
