//! Exports symbols of the executable: those that native libraries look up, those that `gdb` reads
//! for the names of machine code, and no others.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=enif_*");
    for of_drivers in [
        "driver_*",
        "erl_drv_*",
        "erl_errno_id",
        "set_busy_port",
        "set_port_control_flags",
        "get_port_flags",
        "add_driver_entry",
        "remove_driver_entry",
        "null_func",
    ] {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={of_drivers}");
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=__jit_debug_*");
    println!("cargo:rerun-if-changed=build.rs");
}
