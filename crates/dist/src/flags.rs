//! The capabilities that nodes declare in the handshake. Names and values are those of the chapter
//! "Distribution Protocol" of the ERTS user's guide.

use purlin_term::release::{self, Feature, NODES_OF_25_LEAST};

pub const PUBLISHED: u64 = 0x1;
pub const ATOM_CACHE: u64 = 0x2;
pub const EXTENDED_REFERENCES: u64 = 0x4;
pub const DIST_MONITOR: u64 = 0x8;
pub const FUN_TAGS: u64 = 0x10;
pub const DIST_MONITOR_NAME: u64 = 0x20;
pub const HIDDEN_ATOM_CACHE: u64 = 0x40;
pub const NEW_FUN_TAGS: u64 = 0x80;
pub const EXTENDED_PIDS_PORTS: u64 = 0x100;
pub const EXPORT_PTR_TAG: u64 = 0x200;
pub const BIT_BINARIES: u64 = 0x400;
pub const NEW_FLOATS: u64 = 0x800;
pub const UNICODE_IO: u64 = 0x1000;
pub const DIST_HDR_ATOM_CACHE: u64 = 0x2000;
pub const SMALL_ATOM_TAGS: u64 = 0x4000;
pub const UTF8_ATOMS: u64 = 0x10000;
pub const MAP_TAG: u64 = 0x20000;
pub const BIG_CREATION: u64 = 0x40000;
pub const SEND_SENDER: u64 = 0x80000;
pub const BIG_SEQTRACE_LABELS: u64 = 0x100000;
pub const EXIT_PAYLOAD: u64 = 0x400000;
pub const FRAGMENTS: u64 = 0x800000;
pub const HANDSHAKE_23: u64 = 0x1000000;
pub const UNLINK_ID: u64 = 0x2000000;
pub const MANDATORY_25_DIGEST: u64 = 0x4000000;
pub const SPAWN: u64 = 1 << 32;
pub const V4_NC: u64 = 1 << 34;
pub const ALIAS: u64 = 1 << 35;
/// Signals that a process may take out of order, with priority or by an alias.
pub const ALTACT_SIG: u64 = 1 << 37;
pub const NATIVE_RECORDS: u64 = 1 << 38;

/// The flags that a node needs to get signals about monitors. For a node that lacks one of them,
/// only the connection is monitored.
pub const MONITORS: u64 = DIST_MONITOR | DIST_MONITOR_NAME;

const MANDATORY_25: u64 = EXTENDED_REFERENCES
    | FUN_TAGS
    | EXTENDED_PIDS_PORTS
    | UTF8_ATOMS
    | NEW_FUN_TAGS
    | BIG_CREATION
    | NEW_FLOATS
    | MAP_TAG
    | EXPORT_PTR_TAG
    | BIT_BINARIES
    | HANDSHAKE_23;

/// The flags that are assumed of a node while the connection to it is set up.
pub const HOPED_FOR: u64 = DIST_MONITOR | DIST_MONITOR_NAME | SPAWN | ALIAS | UNLINK_ID;

/// The flags of a node of some release.
pub struct Flags {
    pub default: u64,
    pub mandatory: u64,
    pub addable: u64,
    pub rejectable: u64,
    pub strict_order: u64,
}

/// The flags of a node of that release.
pub fn of_release(release: u32) -> Flags {
    let since = |feature: Feature, flags| match feature.is_in(release) {
        true => flags,
        false => 0,
    };
    let mandatory = MANDATORY_25 | since(NODES_OF_25_LEAST, V4_NC | UNLINK_ID);
    let default = mandatory
        | since(release::NATIVE_RECORDS, NATIVE_RECORDS)
        | since(release::PRIORITY_MESSAGES, ALTACT_SIG)
        | HOPED_FOR
        | UNICODE_IO
        | DIST_HDR_ATOM_CACHE
        | SMALL_ATOM_TAGS
        | SEND_SENDER
        | BIG_SEQTRACE_LABELS
        | EXIT_PAYLOAD
        | FRAGMENTS
        | V4_NC
        | MANDATORY_25_DIGEST;
    Flags {
        default,
        mandatory,
        addable: default,
        rejectable: DIST_HDR_ATOM_CACHE | HIDDEN_ATOM_CACHE | FRAGMENTS | ATOM_CACHE,
        strict_order: DIST_HDR_ATOM_CACHE,
    }
}
