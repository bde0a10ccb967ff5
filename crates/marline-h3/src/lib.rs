//! HTTP/3 without I/O: no sockets, no clock.

pub mod qpack;
