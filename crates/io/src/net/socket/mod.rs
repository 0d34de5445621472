//! Natives of module `prim_socket`, on which the library's module `socket` is built.
//!
//! # A socket
//! A reference to a socket is a magic reference to a [`Handle`](state::Handle), which owns a share
//! of a [`Sock`](state::Sock). Nothing here blocks: descriptors are in non-blocking mode. A call
//! that would have to wait returns `select`. Its caller gets `{'$socket', Socket, select, Ref}`
//! when calling again is worthwhile, or `{'$socket', Socket, abort, {Ref, Reason}}` when that
//! message will not come.
//!
//! # Parts
//! [`base`] has atoms, results and codes; [`state`] is the state of a socket and the processes that
//! wait for it, in the queues of [`turns`]; [`connection`] opens, connects and closes; [`io`] sends
//! and receives bytes, [`message`] messages with their control messages, [`batch`] several messages
//! at once, [`sendfile`] files; [`sctp`] handles associations, which have several addresses;
//! [`options`] has the table of options, [`values`] their values; [`addr`] converts addresses
//! between maps and the kernel's format; [`ioctl`] asks about interfaces; [`info`] describes
//! sockets and the system. This file has the table of natives. The operating system is called by
//! [`crate::os`].

pub mod addr;
mod base;
mod batch;
mod connection;
mod info;
mod io;
mod ioctl;
mod message;
mod options;
mod sctp;
mod sendfile;
mod state;
mod turns;
mod values;

use crate::bifs;
pub(crate) use base::{domain_term, type_term};
pub use state::{on_load, open_count, owner_exit, watching};

bifs! {
    Plain "prim_socket":"nif_info"/0 = info::info_0;
    Plain "prim_socket":"nif_info"/1 = info::info_1;
    Plain "prim_socket":"nif_supports"/0 = info::supports_0;
    Plain "prim_socket":"nif_supports"/1 = info::supports_1;
    Plain "prim_socket":"nif_command"/1 = info::command_1;
    Plain "prim_socket":"nif_open"/2 = connection::open_2 [reads(All) outside(Socket)];
    Plain "prim_socket":"nif_open"/4 = connection::open_4 [reads(All) outside(Socket)];
    Plain "prim_socket":"nif_bind"/2 = connection::bind_2 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_bind"/3 = sctp::bind_3 [writes(Cell) since(29) outside(OnSocket)];
    Plain "prim_socket":"nif_peeloff"/2 = sctp::peeloff_2 [since(29)];
    Plain "prim_socket":"nif_connect"/1 = connection::connect_1 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_connect"/3 = connection::connect_3 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_listen"/2 = connection::listen_2 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_accept"/2 = connection::accept_2 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_send"/4 = io::send_4 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_sendto"/5 = io::sendto_5 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_sendmsg"/5 = message::sendmsg_5 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_sendmmsg"/4 = batch::sendmmsg_4 [writes(Cell) since(29) outside(OnSocket)];
    Plain "prim_socket":"nif_sendv"/3 = message::sendv_3 [writes(Cell) since(27) outside(OnSocket)];
    DirtyIo "prim_socket":"nif_sendfile"/5 = sendfile::sendfile_5 [writes(Cell) outside(OnSocket)];
    DirtyIo "prim_socket":"nif_sendfile"/4 = sendfile::sendfile_4;
    DirtyIo "prim_socket":"nif_sendfile"/1 = sendfile::sendfile_1;
    Plain "prim_socket":"nif_recv"/4 = io::recv_4 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_recvfrom"/4 = io::recvfrom_4 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_recvmsg"/5 = message::recvmsg_5 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_recvmmsg"/6 = batch::recvmmsg_6 [writes(Cell) since(29) outside(OnSocket)];
    Plain "prim_socket":"nif_close"/1 = connection::close_1 [writes(Cell) outside(OnSocket)];
    DirtyIo "prim_socket":"nif_finalize_close"/1 = connection::finalize_close_1;
    Plain "prim_socket":"nif_shutdown"/2 = connection::shutdown_2 [writes(Cell) outside(OnSocket)];
    Plain "prim_socket":"nif_setopt"/5 = options::setopt_5;
    Plain "prim_socket":"nif_getopt"/3 = options::getopt_3;
    Plain "prim_socket":"nif_getopt"/4 = options::getopt_4 [before(29)];
    Plain "prim_socket":"nif_getopt"/5 = options::getopt_5 [since(29)];
    Plain "prim_socket":"nif_sockname"/1 = connection::sockname_1;
    Plain "prim_socket":"nif_socknames"/2 = sctp::socknames_2 [since(29)];
    Plain "prim_socket":"nif_peername"/1 = connection::peername_1;
    Plain "prim_socket":"nif_peernames"/2 = sctp::peernames_2 [since(29)];
    DirtyIo "prim_socket":"nif_ioctl"/2 = ioctl::ioctl_2 [recorded];
    DirtyIo "prim_socket":"nif_ioctl"/3 = ioctl::ioctl_3 [recorded];
    DirtyIo "prim_socket":"nif_ioctl"/4 = ioctl::ioctl_4 [recorded];
    Plain "prim_socket":"nif_cancel"/3 = connection::cancel_3;
}
