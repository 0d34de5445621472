//! The living system.

pub mod bif;
pub mod clock;
pub mod code;
pub mod cx;
pub mod filename;
pub mod ids;
pub mod interp;
pub mod options;
pub mod osenv;
pub mod packet;
pub mod posix;
pub mod process;
pub mod sched;
pub mod signal;
pub mod timer;

/// Runs an emulator until it halts; the exit status is the program's.
///
/// This build has no execution engine behind it, which it says.
pub fn start(_options: options::EmulatorOptions) -> ! {
    eprintln!("purlin: runtime not linked");
    std::process::exit(70)
}
