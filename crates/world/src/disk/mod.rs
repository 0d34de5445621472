//! The file system of a machine: files, folders and symbolic links, and what is left of them when
//! the machine loses its power.
//!
//! `walk` finds what a path names, `naming` changes names, `opened` has the calls on descriptors,
//! `durability` what was synced. Errors and their precedence are those of Linux with ext4; the test
//! `disk_against_kernel` compares them with the kernel's.
//!
//! # Not modelled
//! Times, owners and groups, set-id and sticky bits (refused), locks, extended attributes, devices
//! and named pipes, `O_PATH`, `O_TMPFILE`, `O_DIRECT`, mounts, offsets above 1 TiB (refused), seeks
//! in folders (refused), the order in which the kernel lists a folder (names are sorted), and the
//! limit on links to one file. Folders, symbolic links and names take no space. All files belong to
//! the one user that all calls come from. Changes of modes are synced at once.

mod durability;
mod inodes;
mod naming;
mod opened;
mod sparse;
mod walk;

pub use durability::Loss;
pub use inodes::{Caller, Disk, InodeId, Journal, Kind, ROOT, Stat};
pub use opened::{Access, How, Opened, Whence};
