//! HTTP/3 with peers that write its bytes by hand.

mod client;
mod peer;
mod server;
