//! The transport that the server needs: marline's, or that of a test that acts as the peer.

use bytes::Bytes;
use h3::quic;

/// A connection whose requests can be answered in separate tasks.
pub trait Carrier: quic::Connection<Bytes, BidiStream: CarrierStream> + 'static {}

impl<C: quic::Connection<Bytes, BidiStream: CarrierStream> + 'static> Carrier for C {}

/// A bidirectional stream that can be split and moved to another task.
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
