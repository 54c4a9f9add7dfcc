//! The primitives, a file for each mechanism: its entries, each with a line in the
//! [registry](crate::registry), beside what they share. An entry's own documentation says
//! which path the bytes take through the kernel, what it needs, what it is compared with, and
//! what it does not show.

pub(crate) mod bare;
pub(crate) mod controls;
pub(crate) mod copying;
pub(crate) mod datagram;
pub(crate) mod pages;
pub(crate) mod ring;
pub(crate) mod xdp_tx;
pub(crate) mod zerocopy;
