//! The processor topology that a user describes with `+sct`, in the grammar of erl(1):
//! `L0-3c0-3p0:L4-7c0-3p1`, where identifiers are numbers, ranges and lists of them.
//!
//! Invariant: a parsed topology names each logical processor once, and no two entries mean the same
//! thread.

/// One logical processor. For the two kinds of node, `-1` means "not given".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuTopologyEntry {
    pub node: i32,
    pub processor: i32,
    pub processor_node: i32,
    pub core: i32,
    pub thread: i32,
    pub logical: i32,
}

/// Largest identifier of a processor, core or thread.
const MAX_ID: i32 = 0xffff;
/// Maximum number of entries, which is that of identifiers; bounds the expansion of ranges.
const MAX_ENTRIES: usize = MAX_ID as usize + 1;

/// Levels from the innermost outwards; a description must have this order.
const LOGICAL: usize = 0;
const THREAD: usize = 1;
const CORE: usize = 2;
const PROCESSOR_NODE: usize = 3;
const PROCESSOR: usize = 4;
const NODE: usize = 5;

/// Parses and checks a topology; the error is stock's reason.
pub fn parse(text: &str) -> Result<Vec<CpuTopologyEntry>, &'static str> {
    if text.is_empty() {
        return Err("missing cpu topology");
    }
    let mut entries = Vec::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        rest = parse_group(rest, &mut entries)?;
        if entries.len() > MAX_ENTRIES {
            return Err("not unique logical identifiers");
        }
    }
    check(&mut entries)?;
    Ok(entries)
}

fn parse_group<'a>(
    mut rest: &'a [u8],
    entries: &mut Vec<CpuTopologyEntry>,
) -> Result<&'a [u8], &'static str> {
    let mut ids: [Vec<i32>; 6] = [vec![], vec![0], vec![0], vec![-1], vec![0], vec![-1]];
    let mut outermost: Option<usize> = None;
    while let Some((&letter, after)) = rest.split_first() {
        if letter == b':' {
            break;
        }
        let level = match letter {
            b'L' => LOGICAL,
            b't' | b'T' => THREAD,
            b'c' | b'C' => CORE,
            b'p' | b'P' => PROCESSOR,
            // A node inside a processor is distinguished from one around processors by what
            // follows.
            b'n' | b'N' => {
                let group = after.split(|byte| *byte == b':').next().unwrap_or(&[]);
                let inner = outermost.is_none_or(|level| level < PROCESSOR)
                    && group.iter().any(|byte| matches!(byte, b'p' | b'P'));
                if inner { PROCESSOR_NODE } else { NODE }
            }
            _ => return Err("invalid identifier type"),
        };
        if outermost.is_some_and(|seen| level <= seen) {
            return Err("invalid hierarchy");
        }
        outermost = Some(level);
        ids[level].clear();
        rest = parse_ids(after, &mut ids[level])?;
    }
    let logical = ids[LOGICAL].len();
    if logical == 0 {
        return Err("missing logical identifier");
    }
    if ids[THREAD..]
        .iter()
        .any(|level| level.len() != 1 && level.len() != logical)
    {
        return Err("invalid identifier range");
    }
    for row in 0..logical {
        let id = |level: usize| {
            if ids[level].len() == 1 {
                ids[level][0]
            } else {
                ids[level][row]
            }
        };
        entries.push(CpuTopologyEntry {
            node: id(NODE),
            processor: id(PROCESSOR),
            processor_node: id(PROCESSOR_NODE),
            core: id(CORE),
            thread: id(THREAD),
            logical: id(LOGICAL),
        });
    }
    Ok(rest.strip_prefix(b":").unwrap_or(rest))
}

fn parse_ids<'a>(mut rest: &'a [u8], ids: &mut Vec<i32>) -> Result<&'a [u8], &'static str> {
    loop {
        let (first, after) = parse_id(rest).ok_or("invalid identifier")?;
        rest = after;
        let mut last = first;
        if let Some(after) = rest.strip_prefix(b"-") {
            (last, rest) = parse_id(after).ok_or("invalid identifier range")?;
        }
        if first <= last {
            ids.extend(first..=last);
        } else {
            ids.extend((last..=first).rev());
        }
        match rest.strip_prefix(b",") {
            Some(after) if ids.len() <= MAX_ENTRIES => rest = after,
            Some(_) => return Err("invalid identifier range"),
            None => return Ok(rest),
        }
    }
}

fn parse_id(rest: &[u8]) -> Option<(i32, &[u8])> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(digits);
    let id: i32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (id <= MAX_ID).then_some((id, rest))
}

/// Sorts and checks a topology; the error is stock's reason.
pub fn check(entries: &mut [CpuTopologyEntry]) -> Result<(), &'static str> {
    if entries.is_empty() {
        return Err("missing cpu topology");
    }
    if entries.iter().any(|e| {
        [e.processor, e.core, e.thread, e.logical]
            .iter()
            .any(|id| !(0..=MAX_ID).contains(id))
    }) {
        return Err("invalid identifier");
    }
    let mut logical: Vec<i32> = entries.iter().map(|entry| entry.logical).collect();
    logical.sort_unstable();
    if logical.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("not unique logical identifiers");
    }
    entries.sort_unstable_by_key(|entry| {
        let CpuTopologyEntry {
            node,
            processor,
            processor_node,
            core,
            thread,
            logical,
        } = *entry;
        (processor, node, processor_node, core, thread, logical)
    });
    let same_thread = |a: &CpuTopologyEntry, b: &CpuTopologyEntry| {
        CpuTopologyEntry { logical: 0, ..*a } == CpuTopologyEntry { logical: 0, ..*b }
    };
    if entries
        .windows(2)
        .any(|pair| same_thread(&pair[0], &pair[1]))
    {
        return Err("not unique entities");
    }
    // Either no entry belongs to a node, or each belongs to exactly one kind, and a processor is
    // never spread over outer nodes.
    let nodeless = |entry: &CpuTopologyEntry| entry.node < 0 && entry.processor_node < 0;
    let any_nodeless = entries.first().is_some_and(nodeless);
    let bad = entries.windows(2).any(|pair| {
        let (before, entry) = (&pair[0], &pair[1]);
        if any_nodeless {
            return !nodeless(entry);
        }
        (entry.processor == before.processor && entry.node != before.node)
            || (entry.node >= 0) == (entry.processor_node >= 0)
    });
    if bad {
        Err("invalid nodes declaration")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies() {
        for (text, expected) in [
            ("L0-3c0-3", Ok(4)),
            ("L0,2,4t0-2c5p1n0", Ok(3)),
            ("L0-1c0-1p0n0:L2-3c0-1p1n1", Ok(4)),
            ("L0-1c0-1n0p0:L2-3c0-1n1p0", Ok(4)),
            ("L3-0c0-3", Ok(4)),
            ("", Err("missing cpu topology")),
            ("c0", Err("missing logical identifier")),
            ("L", Err("invalid identifier")),
            ("L0-x", Err("invalid identifier range")),
            ("L70000", Err("invalid identifier")),
            ("x0", Err("invalid identifier type")),
            ("c0L0", Err("invalid hierarchy")),
            ("L0-3c0-1", Err("invalid identifier range")),
            ("L0,0c0-1", Err("not unique logical identifiers")),
            ("L0-1c0", Err("not unique entities")),
            ("L0c0:L1c1n0", Err("invalid nodes declaration")),
        ] {
            assert_eq!(parse(text).map(|entries| entries.len()), expected, "{text}");
        }
    }
}
