//! Native libraries find the functions of the interface in the executable, and `gdb` where it is told of machine code: those are
//! exported, and nothing else.

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
