//! Lowers and decodes every function of the installed OTP and Elixir. Checks frames and live
//! registers that follow from the rows of ops against those that the check of the generic code
//! finds.

mod common;

use purlin_isa::codec::Value;
use purlin_isa::ops::{OPS, Op};
use purlin_isa::view::{Code, Extent, Frame, FunctionView};
use purlin_loader::lower::{Callee, Env, LoweredFunction, MapValue, lower, states};
use purlin_loader::{BeamFile, BigInt, GenericCode};

/// Returns words that look like those of terms.
struct Words;
impl Env for Words {
    fn atom(&mut self, number: u32) -> u64 {
        u64::from(number) << 6 | 0xB
    }
    fn literal(&mut self, index: u32) -> u64 {
        u64::from(index) << 4 | 2
    }
    fn bigint(&mut self, _: &BigInt) -> u64 {
        0xF002
    }
    fn map_keys(&mut self, _: u64, _: &[u64]) -> Option<(u64, Vec<MapValue>)> {
        None
    }
    fn record(&mut self, _: u32) -> Option<u64> {
        Some(0xF102)
    }
    fn pair_of_atoms(&mut self, _: u64) -> Option<(u64, u64)> {
        Some((0xB, 0xB))
    }
    fn import(&mut self, index: u32) -> Callee {
        Callee {
            export: 8,
            built_in: true,
            native: index.is_multiple_of(2).then_some(16),
            guard: 16,
        }
    }
    fn lambda(&mut self, _: u32) -> u64 {
        24
    }
    fn strings(&mut self) -> u64 {
        32
    }
    fn own_native(&mut self, _: u32, _: u32) -> Option<u64> {
        None
    }
    fn nif_slot(&mut self, _: usize) -> u64 {
        40
    }
    fn function_counter(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn line_counter(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn mark(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn atoms_of(&mut self, _: u64) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Default)]
struct Seen {
    functions: usize,
    labels: usize,
    instructions: usize,
    facts: usize,
    words: usize,
    ops: Vec<bool>,
}

/// Whether an instruction may name a register without a term. Any word may be compared with an
/// immediate, and the time of a receive is not read again in its second round.
fn may_be_empty(view: &FunctionView, register: Value) -> bool {
    view.ops.iter().any(|op| {
        let i = &op.instruction;
        i.parts().any(|(part, operands)| {
            matches!(
                part,
                Op::IsEqImmed | Op::IsNeImmed | Op::IsEqExact | Op::IsNeExact | Op::WaitTimeout
            ) && operands.contains(&register)
        })
    })
}

fn check(
    file: &BeamFile,
    code: &GenericCode,
    index: usize,
    f: &LoweredFunction,
    all: (Code, &[u32]),
    seen: &mut Seen,
) -> Result<(), String> {
    let (words, labels) = all;
    let extent = Extent {
        start: f.start,
        entry: f.entry,
        end: f.end,
        arity: f.arity,
    };
    let view = FunctionView::new(words, extent).ok_or("no view")?;
    seen.functions += 1;
    let size: usize = view.ops.iter().map(|op| op.instruction.words).sum();
    if size != (f.end - f.start) as usize {
        return Err(format!("{size} words"));
    }
    for (i, op) in view.ops.iter().enumerate() {
        seen.instructions += 1;
        seen.ops[op.instruction.op as usize] = true;
        let row = op.instruction.row();
        if row.list.is_some() && op.instruction.members().is_none() {
            return Err(format!("the list of {} at {}", row.name, op.at));
        }
        if op.frame == Frame::Unreached {
            continue;
        }
        let reads = |v: &&Value| v.is_register();
        for &v in op.instruction.operands.iter().filter(reads) {
            seen.facts += usize::from(view.type_of(i, v).is_some());
        }
        // A live Y register belongs to the frame.
        let frame = match op.frame {
            Frame::Of(n) | Frame::AtLeast(n) => n,
            _ => 0,
        };
        if let Some(y) = view.live_y(i).find(|&y| y >= frame) {
            return Err(format!("y{y} at {} with a frame of {frame}", op.at));
        }
    }
    if view.live_x(view.entry).any(|x| x >= f.arity) {
        return Err("a register that is no argument is live at the entry".into());
    }
    let known = states(file, code, &code.functions[index]).map_err(|e| e.to_string())?;
    for s in known {
        let at = labels[s.label as usize];
        // After the last instruction there is one that raises.
        let Some(i) = view.ops.iter().position(|op| op.at == at) else {
            return Err(format!("label {} is at no instruction", s.label));
        };
        seen.labels += 1;
        let frame = match (s.frame, s.is_one_frame) {
            (None, true) => Frame::None,
            (Some(n), true) => Frame::Of(n as u32),
            (n, false) => Frame::AtLeast(n.unwrap_or(0) as u32),
        };
        let reached = view.ops[i].frame;
        // The two analyses differ on code that only a call which never returns leads to.
        if reached != frame && s.is_one_frame && !matches!(reached, Frame::AtLeast(_)) {
            return Err(format!("label {}: {reached:?}, not {frame:?}", s.label));
        }
        for x in view.live_x(i) {
            if !s.x.contains(&x) && !may_be_empty(&view, Value::X(x)) {
                return Err(format!("label {} at {at}: x{x} is live and empty", s.label));
            }
        }
        for y in view.live_y(i) {
            if !s.clear_frames && !s.y.contains(&y) {
                return Err(format!("label {} at {at}: y{y} is live and empty", s.label));
            }
        }
    }
    Ok(())
}

#[test]
fn views_of_installed_modules_hold_what_the_check_finds() {
    let files: Vec<_> = common::library_dirs()
        .iter()
        .flat_map(|dir| common::beam_files(dir))
        .collect();
    if files.is_empty() {
        println!("skipped: no erl or elixir on the path");
        return;
    }
    let mut seen = Seen {
        ops: vec![false; OPS.len()],
        ..Seen::default()
    };
    let mut faults = Vec::new();
    for path in &files {
        let data = std::fs::read(path).expect("readable");
        let Ok(file) = BeamFile::parse(&data) else {
            continue;
        };
        let Ok(code) = GenericCode::decode(&file) else {
            continue;
        };
        let l = match lower(&file, &code, &mut Words) {
            Ok(l) => l,
            Err(e) => {
                faults.push(format!("{}: {e}", path.display()));
                continue;
            }
        };
        seen.words += l.words.len();
        assert!(l.facts.is_sorted_by_key(|f| f.at), "{}", path.display());
        let words = Code {
            words: &l.words,
            lines: &l.lines,
            facts: &l.facts,
            types: &l.types,
        };
        for (index, f) in l.functions.iter().enumerate() {
            if let Err(e) = check(&file, &code, index, f, (words, &l.labels), &mut seen) {
                let name = file.atom(code.functions[index].name);
                faults.push(format!("{} {name}/{}: {e}", file.module(), f.arity));
            }
        }
    }
    println!(
        "{} modules, {} functions, {} instructions, {} labels, {} typed operands, {} words",
        files.len(),
        seen.functions,
        seen.instructions,
        seen.labels,
        seen.facts,
        seen.words
    );
    let n = faults.len();
    faults.truncate(20);
    assert!(n == 0, "{n} faults:\n{}", faults.join("\n"));
}
