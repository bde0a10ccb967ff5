//! The application's hold on the two directions of a stream.

mod recv;
mod send;

pub use self::recv::RecvStream;
pub use self::send::SendStream;
