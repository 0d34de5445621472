//! Resident memory: what the runtime accounts for, compared with the figures of the system.
//!
//! The system reports for each mapping how much of it is resident. Mappings are the program and its
//! libraries, stacks of threads, areas that the runtime has reserved (one of them for small
//! blocks), the memory of the C library's allocator, and large blocks, which are all the rest. For
//! each of these, the runtime or the allocator counts for itself what is in use.

use crate::json::Json;
use purlin_kernel::code;
use purlin_kernel::process;
use purlin_term::{blocks, region, small_blocks, sys};
use std::fs::File;
use std::io::{BufRead, BufReader};

/// A mapping of this process.
#[derive(Default, Clone, Debug)]
struct Mapping {
    from: usize,
    to: usize,
    access: String,
    name: String,
    resident: usize,
}

/// Bytes of address space that glibc's allocator reserves at a time for threads. Each piece begins
/// at a multiple of that.
const ARENA: usize = 64 << 20;
/// Maximum size of an inaccessible mapping below a stack.
const GUARD: usize = 64 << 10;

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let parse = |n: &str| usize::from_str_radix(n, 16).ok();
    let access = words.next()?.to_string();
    Some(Mapping {
        from: parse(from)?,
        to: parse(to)?,
        access,
        name: words.skip(3).collect::<Vec<_>>().join(" "),
        resident: 0,
    })
}

/// All mappings; empty if the system does not report them.
fn mappings() -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    let Ok(file) = File::open("/proc/self/smaps") else {
        return all;
    };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        if let Some(rest) = line.strip_prefix("Rss:") {
            let n = rest.split_ascii_whitespace().next();
            let n: Option<usize> = n.and_then(|n| n.parse().ok());
            if let (Some(m), Some(n)) = (all.last_mut(), n) {
                m.resident = n * 1024;
            }
        } else if line.as_bytes().first().is_some_and(u8::is_ascii_hexdigit)
            && !line.starts_with(|c: char| c.is_ascii_uppercase())
            && let Some(m) = mapping(&line)
        {
            all.push(m);
        }
    }
    all
}

/// The use of a mapping, from itself and the mapping below it.
fn kind(m: &Mapping, below: Option<&Mapping>, areas: &[sys::Area]) -> &'static str {
    let touches = |b: &&Mapping| b.to == m.from;
    if m.name.starts_with("[stack") {
        return "stacks";
    }
    if m.name == "[heap]" {
        return "allocator";
    }
    if !m.name.is_empty() && !m.name.starts_with("[anon") {
        return "program";
    }
    // The system merges adjacent mappings: the part in an area is asked for separately.
    if areas.iter().any(|a| m.from < a.at + a.bytes && a.at < m.to) {
        return "blocks";
    }
    if m.from.is_multiple_of(ARENA) && m.to - m.from <= ARENA && m.access.starts_with("rw") {
        return "allocator";
    }
    match below.filter(touches) {
        Some(b) if b.access.starts_with("---") && b.to - b.from <= GUARD => "stacks",
        // Zero-initialised memory of a library.
        Some(b) if b.name.starts_with('/') && m.to - m.from <= ARENA => "program",
        _ => "blocks",
    }
}

/// Bytes of the C library's allocator.
#[derive(Clone, Copy)]
struct Allocator {
    /// Bytes obtained from the system for small blocks.
    got: usize,
    /// Bytes of these that are allocated.
    small: usize,
    /// Bytes allocated as mappings of their own.
    mapped: usize,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn allocator() -> Option<Allocator> {
    // SAFETY: takes no arguments and returns a plain structure.
    let i = unsafe { libc::mallinfo2() };
    Some(Allocator {
        got: i.arena,
        small: i.uordblks,
        mapped: i.hblkhd,
    })
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn allocator() -> Option<Allocator> {
    None
}

/// Bytes of apparent large blocks that belong to the allocator's memory for small ones.
///
/// The system merges a full piece of [`ARENA`] bytes with its neighbours, so that it looks like a
/// large block. This holds as far as the allocator has more than was `found`, and there is more
/// memory in large blocks than was allocated. `joined` is what is resident of mappings that may be
/// such.
fn joined_arenas(a: Allocator, found: usize, large: usize, joined: usize) -> usize {
    let missing = a.got.saturating_sub(found);
    let nobodys = large.saturating_sub(a.mapped);
    missing.min(nobodys).min(joined)
}

/// Whether a piece of the allocator may have been merged into this mapping: the start of one is in
/// it.
fn may_hold_arena(m: &Mapping) -> bool {
    m.access.starts_with("rw") && m.from.next_multiple_of(ARENA) < m.to
}

/// Memory of one use, in bytes.
pub struct Row {
    pub what: &'static str,
    /// As the runtime or the allocator counts it.
    pub known: usize,
    /// As the system counts it. All rows add up to what is resident.
    pub resident: usize,
}

/// Known and resident memory by use; `None` if the system does not report it.
pub fn rows() -> Option<Vec<Row>> {
    let all = mappings();
    let allocator = allocator().filter(|_| !all.is_empty())?;
    let Allocator { small, mapped, .. } = allocator;
    let mut areas = sys::areas();
    areas.extend(small_blocks::area());
    let sum_of = |what: &str, and: fn(&Mapping) -> bool| -> usize {
        let these = all.iter().enumerate().filter(|(i, m)| {
            let below = i.checked_sub(1).map(|b| &all[b]);
            kind(m, below, &areas) == what && and(m)
        });
        these.map(|(_, m)| m.resident).sum()
    };
    let sum = |what: &str| sum_of(what, |_| true);
    let in_area = |name: &str| -> usize {
        let of = areas.iter().filter(|a| a.name == name);
        let there = |a: &sys::Area| -> usize {
            let touched = all.iter().filter(|m| m.resident > 0);
            let part = touched.filter_map(|m| {
                let (from, to) = (m.from.max(a.at), m.to.min(a.at + a.bytes));
                (from < to).then(|| sys::resident(from, to - from))?
            });
            part.sum()
        };
        of.map(there).sum()
    };
    let reserved = [
        "process_cells",
        "process_slots",
        "timers",
        "region_table",
        "regions",
        "code",
        "small_blocks",
    ]
    .map(in_area);
    let blocks = sum("blocks").saturating_sub(reserved.iter().sum());
    let (program, stacks) = (sum("program"), sum("stacks"));
    let tables = reserved[1] + reserved[2] + reserved[3];
    // Only the touched part of a heap takes memory.
    let heaps = blocks::resident_bytes();
    let large = blocks.saturating_sub(heaps);
    let found = sum("allocator");
    let joined = joined_arenas(allocator, found, large, sum_of("blocks", may_hold_arena));
    let (arenas, rest) = (found + joined, large - joined);
    // Blocks of spans are small, those of the C library may be of any size.
    let in_spans = small_blocks::usage().used.min(reserved[6]);
    let small = small.min(arenas) + in_spans;
    // Free blocks of signals are in use only for the allocator.
    let small = small.saturating_sub(purlin_kernel::message::blocks::shelved_bytes());
    let unused = (arenas + reserved[6]).saturating_sub(small);
    let rows = [
        ("program_and_libraries", program, program),
        ("stacks", stacks, stacks),
        ("process_cells", process::table().bytes().0, reserved[0]),
        ("process_table_and_timers", tables, tables),
        (
            "regions",
            region::touched_bytes() + region::kept_bytes(),
            reserved[4],
        ),
        ("code", code::memory::bytes(), reserved[5]),
        ("small_blocks", small, arenas + reserved[6] - unused),
        ("unused_in_allocator", unused, unused),
        ("large_heaps", heaps, blocks - large),
        // Only the touched part of an allocation takes memory.
        ("other_large_blocks", mapped.min(rest), rest),
    ];
    let rows = rows.map(|(what, known, resident)| Row {
        what,
        known,
        resident,
    });
    Some(rows.into())
}

/// A table of known and resident memory, and the sums of both. Null if the system does not report
/// it.
pub fn parts() -> Json {
    let Some(rows) = rows() else {
        return Json::Null;
    };
    let known: usize = rows.iter().map(|r| r.known).sum();
    let resident: usize = rows.iter().map(|r| r.resident).sum();
    let apart = 100.0 * (known as f64 - resident as f64) / resident.max(1) as f64;
    let list = rows.iter().map(|r| {
        Json::object([
            ("what", r.what.into()),
            ("known_bytes", r.known.into()),
            ("resident_bytes", r.resident.into()),
        ])
    });
    Json::object([
        ("rows", Json::List(list.collect())),
        ("known_bytes", known.into()),
        ("resident_bytes", resident.into()),
        ("difference_percent", apart.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_apart() {
        let m = |line: &str| mapping(line).expect("is one");
        let file = m("7f0000000000-7f0000002000 rw-p 00001000 08:01 42 /lib/x y.so");
        assert_eq!(
            (file.name.as_str(), file.to - file.from),
            ("/lib/x y.so", 8192)
        );
        let bss = m("7f0000002000-7f0000003000 rw-p 00000000 00:00 0 ");
        assert_eq!(kind(&bss, Some(&file), &[]), "program");
        let guard = m("7f0000004000-7f0000005000 ---p 00000000 00:00 0 ");
        let stack = m("7f0000005000-7f0000105000 rw-p 00000000 00:00 0 ");
        assert_eq!(kind(&stack, Some(&guard), &[]), "stacks");
        assert_eq!(kind(&stack, Some(&file), &[]), "blocks");
        let arena = m("7f0008000000-7f0008021000 rw-p 00000000 00:00 0 ");
        assert_eq!(kind(&arena, None, &[]), "allocator");
        let area = sys::Area {
            name: "regions",
            at: 0x7f0000004000,
            bytes: 1 << 30,
        };
        assert_eq!(kind(&stack, Some(&guard), &[area]), "blocks");
        assert!(mapping("Rss:  4 kB").is_none());
    }

    #[test]
    fn arenas_that_were_joined_to_others_are_found() {
        const M: usize = 1 << 20;
        let a = Allocator {
            got: 160 * M,
            small: 150 * M,
            mapped: 16 * M,
        };
        // 64 of 160 MiB look like a large block.
        assert_eq!(joined_arenas(a, 96 * M, 80 * M, 70 * M), 64 * M);
        // All was found, or there is no more in large blocks than was allocated: nothing is hidden.
        assert_eq!(joined_arenas(a, 160 * M, 80 * M, 70 * M), 0);
        assert_eq!(joined_arenas(a, 96 * M, 16 * M, 70 * M), 0);
        assert_eq!(joined_arenas(a, 96 * M, 80 * M, 0), 0);
        let m = |line: &str| may_hold_arena(&mapping(line).expect("is one"));
        assert!(m("7f0007ff0000-7f000c000000 rw-p 00000000 00:00 0 "));
        assert!(m("7f0008000000-7f0010000000 rw-p 00000000 00:00 0 "));
        assert!(!m("7f0007ff0000-7f0008000000 rw-p 00000000 00:00 0 "));
        assert!(!m("7f0008000000-7f0010000000 ---p 00000000 00:00 0 "));
    }

    #[test]
    fn what_is_touched_is_resident() {
        let page = sys::page_bytes();
        let at = sys::reserve_rw(16 * page);
        // SAFETY: mapped by this test, which has no other references to it.
        unsafe { ((at + 3 * page) as *mut u8).write(1) };
        // With huge pages, neighbours are resident, too.
        assert_eq!(sys::resident(at + 3 * page, page), Some(page));
        assert!(sys::resident(at, 16 * page).is_some_and(|n| (page..=16 * page).contains(&n)));
        // SAFETY: the mapping is this test's, which forgets it.
        unsafe { sys::release(at, 16 * page) };
    }
}
