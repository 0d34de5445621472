//! Tests that damaged files end in an error or in sound code, never in a panic or without end.

mod common;

use common::{Chunks, SAMPLE, assemble, chunks};
use purlin_loader::{BeamFile, GenericCode, disasm_instr};

const CASES_PER_SEED: u64 = 4000;

/// splitmix64: the same cases on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Uses everything that can be read of a file.
fn use_all(data: &[u8]) -> bool {
    let Ok(file) = BeamFile::parse(data) else {
        return false;
    };
    let _ = (
        file.md5(),
        file.locals(),
        file.line(1),
        file.attributes(),
        file.compile_info(),
    );
    let Ok(code) = GenericCode::decode(&file) else {
        return false;
    };
    let mut out = String::new();
    for instr in &code.instrs {
        disasm_instr(&mut out, &file, &code, instr);
    }
    !out.is_empty()
}

fn mutate(random: &mut Random, data: &mut Vec<u8>) {
    const EDGES: [u8; 8] = [0, 1, 7, 8, 0x7f, 0x80, 0xf8, 0xff];
    for _ in 0..1 + random.below(4) {
        let at = random.below(data.len());
        match random.below(8) {
            0 => data.truncate(at),
            1 => data.insert(at, random.next() as u8),
            2 if !data.is_empty() => drop(data.remove(at)),
            3 if data.len() >= at + 4 => {
                data[at..at + 4].copy_from_slice(&[EDGES[random.below(8)]; 4])
            }
            4 if at < data.len() => data[at] = EDGES[random.below(8)],
            5 if at < data.len() => data[at] = random.next() as u8,
            _ if at < data.len() => data[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
}

/// Damages the whole file, or the inside of one chunk of an otherwise well-formed file.
fn mutant(random: &mut Random, file: &[u8], chunks: &Chunks) -> Vec<u8> {
    if random.below(4) == 0 {
        let mut file = file.to_vec();
        mutate(random, &mut file);
        return file;
    }
    let mut chunks = chunks.clone();
    let code = chunks
        .iter()
        .position(|(name, _)| name == b"Code")
        .unwrap_or(0);
    let which = if random.below(2) == 0 {
        code
    } else {
        random.below(chunks.len())
    };
    mutate(random, &mut chunks[which].1);
    assemble(&chunks)
}

#[test]
fn mutants_do_no_harm() {
    let mut seeds = vec![SAMPLE.to_vec()];
    let wanted = [
        "lists.beam",
        "inet_dns.beam",
        "erl_parse.beam",
        "Elixir.Enum.beam",
    ];
    for path in common::library_dirs()
        .iter()
        .flat_map(|dir| common::beam_files(dir))
    {
        if wanted.iter().any(|name| path.ends_with(name)) {
            seeds.push(std::fs::read(path).expect("readable"));
        }
    }
    let mut random = Random(25);
    let (mut cases, mut sound) = (0, 0);
    for seed in &seeds {
        let mut chunks = chunks(seed);
        // Nothing looks into these here, so damage to them would be wasted.
        chunks.retain(|(name, _)| ![b"Dbgi", b"Docs", b"ExCk", b"CInf", b"Attr"].contains(&name));
        let stripped = assemble(&chunks);
        assert!(use_all(&stripped));
        for _ in 0..CASES_PER_SEED {
            sound += u32::from(use_all(&mutant(&mut random, &stripped, &chunks)));
            cases += 1;
        }
    }
    println!("{cases} mutants, {sound} of them still sound");
}
