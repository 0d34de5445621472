//! Compiles the parts that must be C: functions with variable arguments, and the bottom frame of
//! threads that libraries start.

fn main() {
    cc::Build::new()
        .file("c/variadic.c")
        .warnings(true)
        .opt_level(2)
        .compile("purlin_nif_c");
    println!("cargo:rerun-if-changed=c/variadic.c");
    println!("cargo:rerun-if-changed=build.rs");
}
