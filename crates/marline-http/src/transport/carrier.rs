//! What the server asks of a transport: marline's, or a test's that is itself the peer.

use bytes::Bytes;
use h3::quic;

/// A connection whose requests can be answered each in a task of its own.
pub trait Carrier: quic::Connection<Bytes, BidiStream: CarrierStream> + 'static {}

impl<C: quic::Connection<Bytes, BidiStream: CarrierStream> + 'static> Carrier for C {}

/// A request's stream that another task can take, in two halves.
pub trait CarrierStream:
    Send + 'static + quic::BidiStream<Bytes, SendStream: Send + 'static, RecvStream: Send + 'static>
{
}

impl<S> CarrierStream for S where
    S: Send
        + 'static
        + quic::BidiStream<Bytes, SendStream: Send + 'static, RecvStream: Send + 'static>
{
}
