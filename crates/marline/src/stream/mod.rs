//! The application's handles of the two directions of a stream.

mod recv;
mod send;

pub use self::recv::RecvStream;
pub use self::send::SendStream;
