//! The primitives: one file each, named after its id. The file's own
//! documentation says which path the bytes take through the kernel, what it
//! needs, what it is compared with, and what it does not show.

pub(crate) mod bare_send;
pub(crate) mod memcpy;
pub(crate) mod null;
pub(crate) mod send;
pub(crate) mod send_per_field;
pub(crate) mod send_staged;
pub(crate) mod sendfile;
pub(crate) mod sendfile_file;
pub(crate) mod sendmsg_iov;
pub(crate) mod sendmsg_zerocopy;
pub(crate) mod splice;
pub(crate) mod uring_send;
pub(crate) mod uring_send_zc;
pub(crate) mod uring_send_zc_fixed;
pub(crate) mod uring_sendmsg;
pub(crate) mod uring_sendmsg_zc;
pub(crate) mod write;
pub(crate) mod writev;

use std::borrow::Cow;

use iolens_model::data_path::{End, Hop, Movement, Mover};

/// The gather that a program makes which first collects its fields.
pub(crate) const GATHER: Hop = Hop {
    from: Cow::Borrowed("fields"),
    to: Cow::Borrowed("staging buffer"),
    end: End::Sender,
    mover: Mover::User,
    function: Cow::Borrowed("memcpy"),
    movement: Movement::Copy,
};

/// The copy that every plain TCP send makes.
pub(crate) const COPY_IN: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("socket buffer"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_copy_to_page_nocache"),
    movement: Movement::Copy,
};

/// The references in a pipe go into the socket buffer as they are
/// (`MSG_SPLICE_PAGES`, Linux 6.5; `tcp_sendpage` before).
pub(crate) const SPLICE_PAGES: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    to: Cow::Borrowed("socket buffer"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_splice_from_iter"),
    movement: Movement::Reference,
};

/// What a zero-copy send does instead: the pages are pinned, and the socket
/// buffer refers to them.
pub(crate) const PIN: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("socket buffer"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_zerocopy_iter_stream"),
    movement: Movement::Reference,
};

/// The same from a registered buffer, whose pages are pinned already.
pub(crate) const REFER: Hop = Hop {
    from: Cow::Borrowed("registered buffer"),
    to: Cow::Borrowed("socket buffer"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("io_sg_from_iter"),
    movement: Movement::Reference,
};

/// The copy that the kernel makes of such pages when they are delivered on
/// this machine.
pub(crate) const LATE_COPY: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("receive queue"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_copy_ubufs"),
    movement: Movement::LateCopy,
};

/// Over `lo` and veth the socket buffer itself changes hands
/// (`loopback_xmit`, `veth_xmit`).
pub(crate) const HAND_OVER: Hop = Hop {
    from: Cow::Borrowed("send queue"),
    to: Cow::Borrowed("receive queue"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("dev_hard_start_xmit"),
    movement: Movement::Reference,
};

/// The copy that `recv` makes.
pub(crate) const COPY_OUT: Hop = Hop {
    from: Cow::Borrowed("receive queue"),
    to: Cow::Borrowed("receiver's buffer"),
    end: End::Receiver,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_copy_datagram_iter"),
    movement: Movement::Copy,
};
