//! The fuzzer: libFuzzer with the target that FUZZ_TARGET names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// Counts the basic blocks that C libraries execute. Code compiled by gcc with
/// `-fsanitize-coverage=trace-pc` calls this from each basic block; libFuzzer has a section of
/// additional counters for it.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod c_coverage {
    use std::arch::global_asm;

    global_asm!(
        ".pushsection __libfuzzer_extra_counters, \"aw\", @progbits",
        "purlin_c_counters: .zero 65536",
        ".popsection",
        ".pushsection .text.purlin_c_coverage, \"ax\", @progbits",
        ".globl __sanitizer_cov_trace_pc",
        "__sanitizer_cov_trace_pc:",
        "mov rax, [rsp]",
        "movzx eax, ax",
        "lea rcx, [rip + purlin_c_counters]",
        "inc byte ptr [rcx + rax]",
        "ret",
        ".popsection",
    );

    unsafe extern "C" {
        fn __sanitizer_cov_trace_pc();
    }

    /// Keeps it in the executable, ahead of libFuzzer's own, which only warns.
    #[used]
    static KEEP: unsafe extern "C" fn() = __sanitizer_cov_trace_pc;
}

fuzz_target!(|data: &[u8]| {
    static RUN: OnceLock<fn(&[u8])> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        match purlin_fuzz::target(&name) {
            Some(t) => t.run,
            None => {
                let names: Vec<_> = purlin_fuzz::TARGETS.iter().map(|t| t.name).collect();
                eprintln!("FUZZ_TARGET names none of: {}", names.join(" "));
                std::process::exit(64)
            }
        }
    });
    run(data);
});
