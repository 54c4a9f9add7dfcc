//! The hops of bytes on their way, of which the paths of primitives are made.

use std::borrow::Cow;

use iolens_model::data_path::{DataPath, End, Hop, Movement, Mover};

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

/// The copy that a plain UDP send makes.
pub(crate) const COPY_IN_DATAGRAM: Hop =
    Hop { function: Cow::Borrowed("ip_generic_getfrag"), ..COPY_IN };

/// The copy of a frame that an AF_XDP socket makes in copy mode (`xsk_build_skb`).
pub(crate) const COPY_IN_FRAME: Hop = Hop {
    from: Cow::Borrowed("frame in a UMEM"),
    function: Cow::Borrowed("skb_store_bits"),
    ..COPY_IN
};

/// The references in a pipe go into the socket buffer as they are
/// (`MSG_SPLICE_PAGES`, Linux 6.5; `tcp_sendpage` before).
pub(crate) const SPLICE_PAGES: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    function: Cow::Borrowed("skb_splice_from_iter"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// What a zero-copy send does instead: the pages are pinned, and the socket
/// buffer refers to them.
pub(crate) const PIN: Hop = Hop {
    function: Cow::Borrowed("skb_zerocopy_iter_stream"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// The same from a registered buffer, whose pages are pinned already.
pub(crate) const REFER: Hop = Hop {
    from: Cow::Borrowed("registered buffer"),
    function: Cow::Borrowed("io_sg_from_iter"),
    ..PIN
};

/// The copy that the kernel makes of such pages when they are delivered on
/// this machine.
pub(crate) const LATE_COPY: Hop = Hop {
    to: Cow::Borrowed("receive queue"),
    function: Cow::Borrowed("skb_copy_ubufs"),
    movement: Movement::LateCopy,
    ..COPY_IN
};

/// Over `lo` and veth the socket buffer itself changes hands
/// (`loopback_xmit`, `veth_xmit`).
pub(crate) const HAND_OVER: Hop = Hop {
    from: Cow::Borrowed("send queue"),
    to: Cow::Borrowed("receive queue"),
    function: Cow::Borrowed("dev_hard_start_xmit"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// The same for a frame, which meets no queueing discipline on its way.
pub(crate) const HAND_OVER_FRAME: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    function: Cow::Borrowed("__dev_direct_xmit"),
    ..HAND_OVER
};

/// The copy that `recv` makes.
pub(crate) const COPY_OUT: Hop = Hop {
    from: Cow::Borrowed("receive queue"),
    to: Cow::Borrowed("receiver's buffer"),
    end: End::Receiver,
    function: Cow::Borrowed("skb_copy_datagram_iter"),
    ..COPY_IN
};

/// The way of a send that copies, and of one that does not but for what the kernel does late.
pub(crate) const COPIED: &[Hop] = &[COPY_IN, HAND_OVER, COPY_OUT];
pub(crate) const PINNED: &[Hop] = &[PIN, HAND_OVER, LATE_COPY, COPY_OUT];

/// Into a device that drops it the socket buffer goes as it is (`dummy_xmit`,
/// `ifb_xmit`).
pub(crate) const DROP: Hop = Hop { to: Cow::Borrowed("device that drops it"), ..HAND_OVER };

/// The path of the bytes over UDP into a device that drops everything, from
/// that over TCP to a receiver: UDP has functions of its own (net/ipv4/udp.c,
/// `udp_sendmsg` → `ip_make_skb`), and what follows the device does not happen.
/// A late copy stays, since a packet tap still forces it.
pub(crate) fn dropped(path: &DataPath) -> DataPath {
    let of_udp = |hop: &Hop| Hop {
        function: match hop.function.as_ref() {
            "skb_copy_to_page_nocache" => Cow::Borrowed("ip_generic_getfrag"),
            "skb_zerocopy_iter_stream" => Cow::Borrowed("skb_zerocopy_iter_dgram"),
            _ => hop.function.clone(),
        },
        ..hop.clone()
    };
    let at_sender = path.hops.iter().filter(|hop| hop.end == End::Sender);
    let hops = at_sender.map(|hop| match hop {
        handed if [HAND_OVER, HAND_OVER_FRAME].contains(handed) => {
            Hop { to: DROP.to, ..handed.clone() }
        }
        hop => of_udp(hop),
    });
    DataPath { hops: hops.collect(), ..path.clone() }
}
