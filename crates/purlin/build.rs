//! Native libraries find the functions of the interface in the executable: those are exported, and nothing else.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=enif_*");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=erl_errno_id");
    println!("cargo:rerun-if-changed=build.rs");
}
