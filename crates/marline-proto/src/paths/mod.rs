//! Paths: where packets go, and what is known about the way.

pub(crate) mod amplification;
pub(crate) mod ecn;
pub(crate) mod local_cids;
pub(crate) mod mtu;
pub(crate) mod remote_cids;
pub(crate) mod validation;
