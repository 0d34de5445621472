//! Parses and decodes every module of the installed OTP and Elixir.

mod common;

use purlin_loader::{BeamFile, GenericCode, disasm_generic};

#[test]
fn installed_modules_decode() {
    let files: Vec<_> = common::library_dirs()
        .iter()
        .flat_map(|dir| common::beam_files(dir))
        .collect();
    if files.is_empty() {
        println!("skipped: no erl or elixir on the path");
        return;
    }
    let mut faults = Vec::new();
    for (i, path) in files.iter().enumerate() {
        let data = std::fs::read(path).expect("readable");
        let file = match BeamFile::parse(&data) {
            Ok(file) => file,
            Err(error) => {
                faults.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        assert!(
            path.ends_with(format!("{}.beam", file.module())),
            "{}",
            path.display()
        );
        match GenericCode::decode(&file) {
            Ok(code) => assert_eq!(code.functions.len() as u32, file.function_count),
            Err(error) => faults.push(format!("{}: {error}", path.display())),
        }
        if i % 50 == 0 {
            assert!(disasm_generic(&file).is_ok());
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} files:\n{}",
        faults.len(),
        files.len(),
        faults.join("\n")
    );
    println!("{} modules", files.len());
}
