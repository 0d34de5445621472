//! The differences between releases of OTP, in one place: a row for each difference, which says in which releases it is so.
//!
//! Nobody else asks for a release by its number. Differences within files (opcodes, chunks) aren't here: files are told apart by
//! what is in them, and modules of every release run under every other.

use std::ops::RangeInclusive;

/// The releases whose libraries this runtime knows.
pub const KNOWN: RangeInclusive<u32> = 21..=29;

/// The release that is stood in for where nobody has named one.
pub const ASSUMED: u32 = 25;

/// Something that is so in a span of releases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    since: u32,
    before: u32,
}

impl Feature {
    /// Whether it is so in that release.
    #[inline(always)]
    pub const fn is_in(self, release: u32) -> bool {
        self.since <= release && release < self.before
    }
}

/// From that release on.
pub const fn since(release: u32) -> Feature {
    Feature {
        since: release,
        before: u32::MAX,
    }
}

/// In the releases before that one.
pub const fn before(release: u32) -> Feature {
    Feature {
        since: 0,
        before: release,
    }
}

const fn between(first: u32, before: u32) -> Feature {
    Feature {
        since: first,
        before,
    }
}

/// In every release that is known.
pub const ALWAYS: Feature = since(0);

/// Match specifications may ask for the stack of the process (`current_stacktrace`), and for what guards could before.
pub const WIDER_MATCH_SPECS: Feature = since(26);
/// A match specification for calls may name the first arguments alone: its list ends in `'_'`.
pub const PREFIXES_OF_ARGUMENTS: Feature = since(29);
/// `is_integer/3` in match specifications.
pub const BOUNDED_INTEGERS: Feature = since(29);
/// The host of a request may be an address of IPv6 in brackets, as `decode_packet` reads it.
pub const BRACKETED_HOSTS: Feature = since(26);
/// `min/2` and `max/2` are natives.
pub const EXTREMES_NATIVE: Feature = since(26);
/// A large map is shown from its last pair to the first by what shows it for the emulator.
pub const LARGE_MAPS_SHOWN_BACK: Feature = since(26);
/// A sum or a difference with a constant that fails is shown with its operands, like any other.
pub const INCREMENTS_SHOWN: Feature = since(26);
/// The tracer of calls that a traced function does not have is `false` where it is asked for alone, as in the list of all. Before,
/// there it is the empty list.
pub const NO_META_TRACER_FALSE: Feature = since(29);
/// `call_memory` of `trace_pattern`.
pub const CALL_MEMORY: Feature = since(26);
/// Every error of the system has a name.
pub const ERRORS_NAMED: Feature = since(29);
/// A value that is to be UTF-8 in a new binary is checked when the sizes are reckoned, as one that is to be UTF-32 is.
pub const UTF_SIZES: Feature = since(27);
/// The form `silent` of a match specification means nothing to a process that nobody traces.
pub const SILENT_IF_TRACED: Feature = since(27);
/// A tracer that asked for `return_to` of a call is told which function handles the exception that ends it, wherever that is;
/// before, only of the caller.
pub const RETURNS_TO_ANY_HANDLER: Feature = since(27);
/// Tracers that are to be told of nothing that is sent hear of nothing that a port sends either.
pub const PATTERNS_STOP_PORTS: Feature = since(27);
/// A process that inherits what another is traced for has that alone, and not what all new processes are traced for.
pub const INHERITS_TRACE_ALONE: Feature = since(27);
/// A process that links with another passes on its trace flags, if they are to be set on links. Before, only links that are made
/// with a process do that.
pub const LINKS_PASS_TRACE_ON: Feature = since(27);
/// The end of a link that was asked for with a process that has gone is told to tracers.
pub const REFUSED_LINKS_TOLD: Feature = since(28);
/// The drivers of sockets know `reuseport`, `reuseport_lb` and `exclusiveaddruse`.
pub const REUSE_OF_PORTS: Feature = since(26);
/// Whether a stream reads beyond the packet that it needs can be chosen (`read_ahead`).
pub const READ_AHEAD: Feature = since(27);
/// `open_port` opens a file by its name.
pub const PORTS_ON_FILES: Feature = before(27);
/// Embedded third-party components can be listed.
pub const EMBEDDED_TOLD: Feature = since(28);
/// `-S` on the command line hands all that follows to a function; `-extra` ends what stands before it like any other source of
/// arguments; `-detached` is shown to `init`.
pub const CALL_WITH_REST: Feature = since(26);
/// `+JMsingle`.
pub const SINGLE_MAPPED_CODE: Feature = since(26);
/// `+C multi_time_warp` unless told otherwise.
pub const MULTI_TIME_WARP: Feature = since(26);
/// Atoms are written in UTF-8 to the external format unless another encoding is asked for.
pub const UTF8_ATOMS_OUT: Feature = since(26);
/// `term_to_binary(T, [local])`: an encoding that only the runtime which made it reads.
pub const LOCAL_ENCODING: Feature = since(26);
/// A request to the drivers of sockets begins with a reference of the sender's, which the answer carries.
pub const REFERENCES_OF_SENDERS: Feature = since(26);
/// `process_info(P, {dictionary, Key})`.
pub const DICTIONARY_KEYS: Feature = since(26);
/// Processes have labels, which `process_info` tells.
pub const PROCESS_LABELS: Feature = since(27);
/// `max_heap_size` has a field for binaries that are shared with others.
pub const SHARED_BINARIES_IN_LIMIT: Feature = since(27);
/// Keys of small maps that are atoms stand in order of the atoms' numbers, not of their names.
pub const MAP_KEYS_BY_NUMBER: Feature = since(26);
/// The hash that trees of maps and tables of keys are built by has 64 bits. Before, 32.
pub const WIDE_HASHES: Feature = since(26);
/// Tables of ETS do without the lowest bit of that hash.
pub const ETS_HASHES_HALVED: Feature = since(29);
/// Pairs of a large map are listed in the order in which iterators give them. Before, in reverse.
pub const MAPS_LISTED_FORWARD: Feature = since(29);
/// Nobody knows which process has made a fun: the first one is told for it.
pub const FUNS_OF_INIT: Feature = since(27);
/// Integers have 4,194,240 bits at most, not 33,554,368; `system_info` tells the largest.
pub const SMALLER_INTEGERS: Feature = since(27);
/// Sending to other nodes need not make a process wait: `process_info` and `system_info` tell whether it does.
pub const ASYNC_DIST_TOLD: Feature = since(26);
/// In the external format each port has a number of 64 bits. Before, only one whose number takes more than 28.
pub const PORTS_OF_64_BITS: Feature = since(26);
/// A reference of the own node is taken with four or five words, of which three are used.
pub const LONG_REFERENCES_TAKEN: Feature = since(26);
/// The source of monotonic time tells the resolution that is used, beside that of the clock.
pub const USED_RESOLUTION_TOLD: Feature = since(26);
/// Identifiers of the own node's processes and ports may have 60 bits. Before, 28.
pub const WIDE_IDENTIFIERS: Feature = since(26);
/// The report of a module that has to be compiled again also says that another release would do.
pub const OTHER_RELEASE_ADVISED: Feature = since(27);
/// The checksum of a dictionary of `zlib` is not negative.
pub const DICTIONARY_CHECKSUMS_UNSIGNED: Feature = since(27);
/// Zeros may end the lines that a regular expression sees (`{newline, nul}`).
pub const NUL_ENDS_LINES: Feature = since(28);
/// A search in an empty binary needs a pattern. Before, nobody looked at it.
pub const EMPTY_SUBJECTS_NEED_PATTERNS: Feature = since(27);
/// A part of at most 64 bytes is a copy: nobody sees that it refers to the whole.
pub const SMALL_PARTS_COPIED: Feature = since(27);
/// The size of a fun in the external format is told as it is.
pub const EXACT_FUN_SIZES: Feature = since(27);
/// A large binary is told as two objects: the part, and what it refers to.
pub const LARGE_BINARIES_IN_TWO: Feature = since(27);
/// A fun is told with an object by which it holds on to its code.
pub const FUNS_IN_TWO: Feature = between(27, 29);
/// A fun is told as what it has captured, behind two words.
pub const LEAN_FUNS: Feature = since(29);
/// Nobody counts the funs that are made of the same code: each says that it is the only one.
pub const FUNS_COUNT_AS_ONE: Feature = since(29);
/// `binary:referenced_byte_size` of what refers to nothing is in bits.
pub const OWN_SIZE_IN_BITS: Feature = between(27, 28);
/// `binary:copy`, parts of binaries and packets: what isn't made of whole bytes is refused even where nothing of the rest is looked at.
pub const COPIES_WHOLE_BYTES: Feature = since(27);
/// Binaries and bit strings lie on the heap or are parts of what lies elsewhere: there is no third kind.
pub const TWO_KINDS_OF_BITS: Feature = since(27);
/// In the external format a bit string of no bits is an empty binary, and not the kind with a number of bits in its last byte.
pub const NO_BITS_REFUSED: Feature = since(27);
/// `iolist_to_iovec` leaves a large part by itself, whatever is before it; what is small is joined without end.
pub const LARGE_PARTS_ALONE: Feature = since(27);
/// `external_size` takes the options that `term_to_binary` takes.
pub const SIZES_BY_ALL_OPTIONS: Feature = since(27);
/// Arithmetic on large integers counts reductions by their length.
pub const LARGE_SUMS_COUNTED: Feature = since(29);
/// `0.0` and `-0.0` are two values to `=:=`, to maps and to hashes.
pub const SIGNED_ZEROS: Feature = since(27);
/// `+P` is 1048576 unless told otherwise.
pub const MILLION_PROCESSES: Feature = since(27);
/// `system_monitor` tells of long queues of messages.
pub const LONG_QUEUES_TOLD: Feature = since(27);
/// Sessions of tracing have a system monitor of their own; what it is to tell of may be turned off by name.
pub const MONITORS_OF_SESSIONS: Feature = since(28);
/// A process that is to be suspended while it is in a native on a dirty thread is so when that has returned: whoever waits for it
/// waits as long.
pub const SUSPENDED_AFTER_NATIVES: Feature = since(28);
/// `+JPcover`.
pub const COVERAGE: Feature = since(27);
/// `+JPperfdirectory`, and `fp` and `no_fp` of `+JPperf`.
pub const PERF_DIRECTORY: Feature = since(27);
/// `+zhft`, and `flush_timeout` of `halt/2`.
pub const HALT_FLUSH_TIMEOUT: Feature = since(27);
/// `ets:update_element` says that a position is what is wrong.
pub const ETS_POSITION_CAUSE: Feature = since(27);
/// `ets:update_counter` and `update_element` look at their default whether they need it or not.
pub const ETS_SOUND_DEFAULTS: Feature = since(29);
/// An heir need not be told of the table that it gets.
pub const SILENT_HEIRS: Feature = since(28);
/// A local time that is said to be in summer is taken for what it says where there is no summer time.
pub const SUMMER_IF_THERE_IS: Feature = since(28);
/// A key pattern that has maps in it, but no variable, is looked up in a table as the whole key, though a map matches larger ones
/// where tables are walked through.
pub const ETS_MAPS_LOOKED_UP: Feature = before(27);
/// Lists are put into tables of kind `bag` from behind.
pub const BAGS_FROM_BEHIND: Feature = between(23, 26);
/// Module `socket` tells more of itself; `{tcp, keepcnt}` and its like; how many bytes there are to be read.
pub const MORE_OF_SOCKETS: Feature = since(27);
/// An accepted socket is connected, and not the one that listens.
pub const ACCEPTED_CONNECTED: Feature = since(26);
/// `{tcp, user_timeout}` and `{otp, select_read}` of module `socket`.
pub const SOCKET_USER_TIMEOUT: Feature = since(28);
/// The type of service is told as a map, with what it means by either of two readings; code points have names. Times of packets
/// in nanoseconds, and messages that are notifications.
pub const SERVICES_AS_MAPS: Feature = since(29);
/// The float that stands for a large integer is the nearest one, not one that is rounded digit by digit.
pub const NEAREST_FLOATS: Feature = since(29);
/// A table takes a word more.
pub const TABLES_A_WORD_MORE: Feature = since(29);
/// The debugger's flags, `+D` and those behind it.
pub const DEBUGGER: Feature = since(28);
/// A trace pattern's options are looked at first, then its specification.
pub const TRACE_OPTIONS_FIRST: Feature = since(27);
/// An item that is asked about a function must be a known one, whether the function is traced or not.
pub const TRACE_ITEMS_FIRST: Feature = since(29);
/// Iterators of maps may have an order: they hold the keys that are left.
pub const ORDERED_ITERATORS: Feature = since(26);
/// Programs may ask for the signals of terminals: another size of the window, going on after a stop.
pub const TERMINAL_SIGNALS: Feature = since(28);
/// A match that begins within a character of a long text is none, where that of a short one is `badarg`.
pub const NO_MATCH_WITHIN_CHARACTERS: Feature = before(27);
/// Regular expressions are what PCRE2 takes, with its texts for what it does not.
pub const PATTERNS_OF_PCRE2: Feature = since(28);
/// The end of a line in a compiled pattern is the one that it was compiled with: no call may choose another.
pub const LINE_ENDS_STAY: Feature = since(28);
/// `re:compile` may export a pattern, and `re:import` takes it.
pub const EXPORTED_PATTERNS: Feature = since(28);
/// Aliases, monitors and links may have priority: what comes of them goes before other messages.
pub const PRIORITY_MESSAGES: Feature = since(28);
/// Nodes refuse others that lack identifiers of processes with 64 bits, or numbers for ends of links.
pub const NODES_OF_25_LEAST: Feature = since(26);
/// Native records: in the external format, and to other nodes.
pub const NATIVE_RECORDS: Feature = since(29);
/// Exit signals may be sent by way of an alias.
pub const EXIT_BY_ALIAS: Feature = since(28);
/// A request to the drivers of sockets to open one names the protocol.
pub const PROTOCOL_OF_SOCKETS: Feature = since(29);
/// The buffers of the drivers of sockets have 9,216 bytes unless told otherwise, not 1,460.
pub const LARGER_SOCKET_BUFFERS: Feature = since(28);
/// Receiving from a socket without waiting answers `timeout` where there is nothing, not `ok`, and `{timeout, Data}` where there is
/// not all.
pub const SOCKET_SAYS_TIMEOUT: Feature = since(27);
/// The socket module's tables of options and messages name the number of a level and of an option besides their names.
pub const SOCKET_LEVEL_NUMBERS: Feature = since(29);

/// The atoms that stock's emulator has before it runs its first function, a line each, in the order in which it makes them.
/// `scripts/atoms.sh` has asked it. Releases whose keys of maps stand in order of names need none.
const FIRST_ATOMS: &[(Feature, &str)] = &[
    (between(26, 28), include_str!("../atoms/otp27.txt")),
    (since(28), include_str!("../atoms/otp29.txt")),
];

/// The names of the atoms that the emulator of that release has before it runs its first function, as far as their order
/// means anything.
pub fn first_atoms(release: u32) -> impl Iterator<Item = &'static str> {
    let rows = FIRST_ATOMS.iter().filter(move |r| r.0.is_in(release));
    rows.flat_map(|r| r.1.lines())
}

/// Modules that stock has in the emulator itself, in the order in which it loads them.
pub const PRELOADED: &[(Feature, &str)] = &[
    (ALWAYS, "erts_code_purger"),
    (ALWAYS, "erl_init"),
    (ALWAYS, "init"),
    (ALWAYS, "prim_buffer"),
    (ALWAYS, "prim_eval"),
    (ALWAYS, "prim_inet"),
    (ALWAYS, "prim_file"),
    (ALWAYS, "zlib"),
    (ALWAYS, "socket_registry"),
    (ALWAYS, "prim_socket"),
    (ALWAYS, "prim_net"),
    (ALWAYS, "prim_zip"),
    (ALWAYS, "erl_prim_loader"),
    (ALWAYS, "erlang"),
    (ALWAYS, "erts_internal"),
    (ALWAYS, "erl_tracer"),
    (ALWAYS, "erts_literal_area_collector"),
    (since(27), "erts_trace_cleaner"),
    (ALWAYS, "erts_dirty_process_signal_handler"),
    (ALWAYS, "atomics"),
    (ALWAYS, "counters"),
    (ALWAYS, "persistent_term"),
];

/// Modules from those above that not every version of the older releases has.
pub const MAY_LACK: &[&str] = &[
    "prim_buffer",
    "socket_registry",
    "prim_socket",
    "prim_net",
    "erts_dirty_process_signal_handler",
    "atomics",
    "counters",
    "persistent_term",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_atoms_are_of_one_list() {
        assert_eq!(first_atoms(25).count(), 0);
        for release in 26..=*KNOWN.end() {
            let mut names: Vec<&str> = first_atoms(release).collect();
            assert_eq!(names[..2], ["false", "true"]);
            let n = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), n);
        }
    }
}
