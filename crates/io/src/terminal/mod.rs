//! The terminal: module `prim_tty` of OTP 26 and later, the driver `tty_sl` of OTP 25 with its
//! edited line (`line.rs`), and terminal descriptions.

pub mod line;
pub mod prim_tty;
mod terminfo;
pub mod tty;
