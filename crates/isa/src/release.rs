//! The differences between releases of OTP, a row for each, which says in which releases it
//! applies.
//!
//! Numbers of releases stand in two other places, which are tables too: the row of a native that
//! not all releases have (`since(28)`), and the versions of `erl_nif.h` (`nif/src/load.rs`).
//! Differences within files (opcodes, chunks) aren't here: files are recognized by their content,
//! and modules of every release run under every other.

use std::ops::RangeInclusive;

/// The releases whose libraries this runtime knows.
pub const KNOWN: RangeInclusive<u32> = 21..=29;

/// The release that is assumed if none is named.
pub const ASSUMED: u32 = 25;

/// A property of a range of releases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    since: u32,
    before: u32,
}

impl Feature {
    /// Whether it applies in that release.
    #[inline(always)]
    pub const fn is_in(self, release: u32) -> bool {
        self.since <= release && release < self.before
    }
}

/// Applies from that release on.
pub const fn since(release: u32) -> Feature {
    Feature {
        since: release,
        before: u32::MAX,
    }
}

/// Applies in the releases before that one.
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

/// Applies in every known release.
pub const ALWAYS: Feature = since(0);

/// Match specifications may ask for the stack of the process (`current_stacktrace`), and for
/// everything that guards could ask for before.
pub const WIDER_MATCH_SPECS: Feature = since(26);
/// A match specification for calls may match the first arguments only: its list ends in `'_'`.
pub const PREFIXES_OF_ARGUMENTS: Feature = since(29);
/// `is_integer/3` in match specifications.
pub const BOUNDED_INTEGERS: Feature = since(29);
/// The host of a request may be an IPv6 address in brackets, as `decode_packet` reads it.
pub const BRACKETED_HOSTS: Feature = since(26);
/// `min/2` and `max/2` are natives.
pub const EXTREMES_NATIVE: Feature = since(26);
/// The emulator's own printer shows a tree map from its last pair to the first.
pub const LARGE_MAPS_SHOWN_BACK: Feature = since(26);
/// A failing sum or difference with a constant is shown with its operands, like any other.
pub const INCREMENTS_SHOWN: Feature = since(26);
/// The call tracer of a function that is not traced is `false` if asked for alone, as in the list
/// of all items. Before, it was the empty list.
pub const NO_META_TRACER_FALSE: Feature = since(29);
/// `call_memory` of `trace_pattern`.
pub const CALL_MEMORY: Feature = since(26);
/// Every system error has a name.
pub const ERRORS_NAMED: Feature = since(29);
/// A value to be encoded in UTF-8 in a new binary is checked when the sizes are computed, as one
/// for UTF-32 is.
pub const UTF_SIZES: Feature = since(27);
/// The text of an alias has five numbers, so `list_to_ref/1` takes as many.
pub const LONG_ALIAS_TEXT: Feature = since(27);
/// The form `silent` of a match specification has no effect on a process that is not traced.
pub const SILENT_IF_TRACED: Feature = since(27);
/// A tracer with `return_to` gets the function that handles an exception, wherever that is; before,
/// only if it was the caller.
pub const RETURNS_TO_ANY_HANDLER: Feature = since(27);
/// A trace pattern that suppresses all sends also suppresses those of ports.
pub const PATTERNS_STOP_PORTS: Feature = since(27);
/// A process that inherits trace flags has only those, without the flags for all new processes.
pub const INHERITS_TRACE_ALONE: Feature = since(27);
/// A process that links to another passes on its trace flags, if they are set on link. Before, only
/// links that are made with a process do that.
pub const LINKS_PASS_TRACE_ON: Feature = since(27);
/// Tracers see the end of a link to a process that does not exist.
pub const REFUSED_LINKS_TOLD: Feature = since(28);
/// The drivers of sockets know `reuseport`, `reuseport_lb` and `exclusiveaddruse`.
pub const REUSE_OF_PORTS: Feature = since(26);
/// Whether a stream reads beyond the packet that it needs is an option (`read_ahead`).
pub const READ_AHEAD: Feature = since(27);
/// `open_port` opens a file by its name.
pub const PORTS_ON_FILES: Feature = before(27);
/// Embedded third-party components can be listed.
pub const EMBEDDED_TOLD: Feature = since(28);
/// `-S` on the command line hands all following arguments to a function. `-extra` ends the
/// arguments before it in any source. `-detached` is passed on to `init`.
pub const CALL_WITH_REST: Feature = since(26);
/// `+JMsingle`.
pub const SINGLE_MAPPED_CODE: Feature = since(26);
/// `+C multi_time_warp` is the default.
pub const MULTI_TIME_WARP: Feature = since(26);
/// Atoms are written to the external format in UTF-8 unless another encoding is asked for.
pub const UTF8_ATOMS_OUT: Feature = since(26);
/// `term_to_binary(T, [local])`: an encoding that only the same runtime instance reads.
pub const LOCAL_ENCODING: Feature = since(26);
/// A request to the socket drivers begins with a reference of the sender's, which the answer
/// repeats.
pub const REFERENCES_OF_SENDERS: Feature = since(26);
/// `process_info(P, {dictionary, Key})`.
pub const DICTIONARY_KEYS: Feature = since(26);
/// Processes have labels, which `process_info` returns.
pub const PROCESS_LABELS: Feature = since(27);
/// `max_heap_size` has a field for shared binaries.
pub const SHARED_BINARIES_IN_LIMIT: Feature = since(27);
/// Atom keys of flat maps are sorted by the number of the atom, not by its name.
pub const MAP_KEYS_BY_NUMBER: Feature = since(26);
/// The hash of tree maps and of the keys of tables has 64 bits. Before, 32.
pub const WIDE_HASHES: Feature = since(26);
/// Tables of ETS ignore the lowest bit of that hash.
pub const ETS_HASHES_HALVED: Feature = since(29);
/// The pairs of a tree map are listed in the order of its iterators. Before, in reverse.
pub const MAPS_LISTED_FORWARD: Feature = since(29);
/// The creator of a fun is not known: the first process is reported instead.
pub const FUNS_OF_INIT: Feature = since(27);
/// Integers have at most 4,194,240 bits, not 33,554,368; `system_info` returns the limit.
pub const SMALLER_INTEGERS: Feature = since(27);
/// Sends to other nodes may be asynchronous: `process_info` and `system_info` return whether they
/// are.
pub const ASYNC_DIST_TOLD: Feature = since(26);
/// In the external format each port has a number of 64 bits. Before, only one whose number needs
/// more than 28.
pub const PORTS_OF_64_BITS: Feature = since(26);
/// A reference of the own node is accepted with four or five words, of which three are used.
pub const LONG_REFERENCES_TAKEN: Feature = since(26);
/// The information about the source of monotonic time has the resolution in use, besides that of
/// the clock.
pub const USED_RESOLUTION_TOLD: Feature = since(26);
/// Identifiers of the own node's processes and ports may have 60 bits. Before, 28.
pub const WIDE_IDENTIFIERS: Feature = since(26);
/// The report of a module that must be recompiled also suggests another release.
pub const OTHER_RELEASE_ADVISED: Feature = since(27);
/// The checksum of a dictionary of `zlib` is not negative.
pub const DICTIONARY_CHECKSUMS_UNSIGNED: Feature = since(27);
/// NUL may end the lines that a regular expression sees (`{newline, nul}`).
pub const NUL_ENDS_LINES: Feature = since(28);
/// A search in an empty binary checks its pattern. Before, it was ignored.
pub const EMPTY_SUBJECTS_NEED_PATTERNS: Feature = since(27);
/// A part of at most 64 bytes is a copy: nobody sees that it refers to the whole.
pub const SMALL_PARTS_COPIED: Feature = since(27);
/// The size of a fun in the external format is exact.
pub const EXACT_FUN_SIZES: Feature = since(27);
/// The size of a counted binary is that of two objects: the part, and the binary it refers to.
pub const LARGE_BINARIES_IN_TWO: Feature = since(27);
/// The size of a fun includes an object that keeps its code alive.
pub const FUNS_IN_TWO: Feature = between(27, 29);
/// The size of a fun is that of its environment plus two words.
pub const LEAN_FUNS: Feature = since(29);
/// Funs of the same code are not counted: the count of each is one.
pub const FUNS_COUNT_AS_ONE: Feature = since(29);
/// `binary:referenced_byte_size` of a binary that refers to no other is in bits.
pub const OWN_SIZE_IN_BITS: Feature = between(27, 28);
/// `binary:copy`, parts of binaries and packets: a bitstring that isn't made of whole bytes is
/// refused even if its last bits are not looked at.
pub const COPIES_WHOLE_BYTES: Feature = since(27);
/// Binaries and bitstrings lie on the heap or are parts of a counted binary: there is no third
/// kind.
pub const TWO_KINDS_OF_BITS: Feature = since(27);
/// In the external format an empty bitstring is an empty binary. A bitstring with a number of bits
/// in its last byte can't be empty.
pub const NO_BITS_REFUSED: Feature = since(27);
/// `iolist_to_iovec` keeps a large part by itself, whatever precedes it; small parts are joined
/// without limit.
pub const LARGE_PARTS_ALONE: Feature = since(27);
/// `external_size` takes all options of `term_to_binary`.
pub const SIZES_BY_ALL_OPTIONS: Feature = since(27);
/// Arithmetic on large integers counts reductions by their length.
pub const LARGE_SUMS_COUNTED: Feature = since(29);
/// `0.0` and `-0.0` are different to `=:=`, to maps and to hashes.
pub const SIGNED_ZEROS: Feature = since(27);
/// `+P` is 1048576 by default.
pub const MILLION_PROCESSES: Feature = since(27);
/// `system_monitor` reports long message queues.
pub const LONG_QUEUES_TOLD: Feature = since(27);
/// Trace sessions have a system monitor of their own, and its items may be turned off by name.
pub const MONITORS_OF_SESSIONS: Feature = since(28);
/// A process that is in a native on a dirty thread is suspended only when the native has returned,
/// and callers that suspend it wait until then.
pub const SUSPENDED_AFTER_NATIVES: Feature = since(28);
/// `+JPcover`.
pub const COVERAGE: Feature = since(27);
/// `+JPperfdirectory`, and `fp` and `no_fp` of `+JPperf`.
pub const PERF_DIRECTORY: Feature = since(27);
/// `+zhft`, and `flush_timeout` of `halt/2`.
pub const HALT_FLUSH_TIMEOUT: Feature = since(27);
/// The error of `ets:update_element` says that the position is wrong.
pub const ETS_POSITION_CAUSE: Feature = since(27);
/// `ets:update_counter` and `update_element` check their default whether they need it or not.
pub const ETS_SOUND_DEFAULTS: Feature = since(29);
/// The notification of an heir of a table is optional.
pub const SILENT_HEIRS: Feature = since(28);
/// A local time that is said to be daylight saving time is taken as it is where there is none.
pub const SUMMER_IF_THERE_IS: Feature = since(28);
/// A key pattern that contains maps but no variable is looked up as the whole key, though a map
/// matches larger ones when the table is traversed.
pub const ETS_MAPS_LOOKED_UP: Feature = before(27);
/// Lists are inserted into tables of kind `bag` from the end.
pub const BAGS_FROM_BEHIND: Feature = between(23, 26);
/// Module `socket` returns more about itself; options such as `{tcp, keepcnt}`; the number of bytes
/// to read.
pub const MORE_OF_SOCKETS: Feature = since(27);
/// The begun packet of an active socket is looked at again when its packet type changes.
pub const PACKETS_BEGIN_AGAIN: Feature = since(27);
/// An accepted socket is reported as connected, and the listening one is not.
pub const ACCEPTED_CONNECTED: Feature = since(26);
/// `{tcp, user_timeout}` and `{otp, select_read}` of module `socket`.
pub const SOCKET_USER_TIMEOUT: Feature = since(28);
/// The type of service is a map with both of its interpretations; code points have names. Time
/// stamps of packets in nanoseconds, and messages that are notifications.
pub const SERVICES_AS_MAPS: Feature = since(29);
/// The float of a large integer is the nearest one, not one that is rounded digit by digit.
pub const NEAREST_FLOATS: Feature = since(29);
/// A table takes one more word.
pub const TABLES_A_WORD_MORE: Feature = since(29);
/// The debugger's flags: `+D` and those below it.
pub const DEBUGGER: Feature = since(28);
/// The options of a trace pattern are checked before its specification.
pub const TRACE_OPTIONS_FIRST: Feature = since(27);
/// An item that is asked about a function must be known, whether the function is traced or not.
pub const TRACE_ITEMS_FIRST: Feature = since(29);
/// Iterators of maps may be ordered: they hold the remaining keys.
pub const ORDERED_ITERATORS: Feature = since(26);
/// Programs may subscribe to the signals of terminals: a resized window, continuing after a stop.
pub const TERMINAL_SIGNALS: Feature = since(28);
/// A match that begins within a character of a long text is no match, where that of a short one is
/// `badarg`.
pub const NO_MATCH_WITHIN_CHARACTERS: Feature = before(27);
/// Regular expressions have the syntax of PCRE2, with its texts for errors.
pub const PATTERNS_OF_PCRE2: Feature = since(28);
/// A compiled pattern keeps its newline convention: no call may choose another.
pub const LINE_ENDS_STAY: Feature = since(28);
/// `re:compile` may export a pattern, and `re:import` accepts it.
pub const EXPORTED_PATTERNS: Feature = since(28);
/// Aliases, monitors and links may have priority: their messages go before others.
pub const PRIORITY_MESSAGES: Feature = since(28);
/// Nodes refuse others that lack 64-bit process identifiers or unlink identifiers.
pub const NODES_OF_25_LEAST: Feature = since(26);
/// Native records: in the external format, and to other nodes.
pub const NATIVE_RECORDS: Feature = since(29);
/// Exit signals may be sent by way of an alias.
pub const EXIT_BY_ALIAS: Feature = since(28);
/// A request to the socket drivers to open a socket names the protocol.
pub const PROTOCOL_OF_SOCKETS: Feature = since(29);
/// The buffers of the socket drivers have 9,216 bytes by default, not 1,460.
pub const LARGER_SOCKET_BUFFERS: Feature = since(28);
/// A non-blocking receive from a socket returns `timeout` if there is nothing, not `ok`, and
/// `{timeout, Data}` if there is not enough.
pub const SOCKET_SAYS_TIMEOUT: Feature = since(27);
/// The socket module's tables of options and messages have the number of a level and of an option
/// besides their names.
pub const SOCKET_LEVEL_NUMBERS: Feature = since(29);
/// Events of SCTP that a socket option does not name are off.
pub const EVENTS_LEFT_OUT: Feature = since(29);

/// The atoms that stock's emulator has before it runs its first function, a line each, in the order
/// in which it makes them. `scripts/atoms.sh` obtains them from stock. Releases that sort the keys
/// of maps by name need none.
const FIRST_ATOMS: &[(Feature, &str)] = &[
    (between(26, 28), include_str!("../atoms/otp27.txt")),
    (since(28), include_str!("../atoms/otp29.txt")),
];

/// Returns the names of the atoms that the emulator of that release has before it runs its first
/// function, as far as their order matters.
pub fn first_atoms(release: u32) -> impl Iterator<Item = &'static str> {
    let rows = FIRST_ATOMS.iter().filter(move |r| r.0.is_in(release));
    rows.flat_map(|r| r.1.lines())
}

/// Modules that stock preloads, in the order in which it loads them.
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

/// Modules of [`PRELOADED`] that some versions of older releases lack.
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
