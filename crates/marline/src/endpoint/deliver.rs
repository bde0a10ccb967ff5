//! Delivers received datagrams to their connections, or to the worker or process that has them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use marline_proto::{EcnCodepoint, FourTuple, Instant, Route, Side, Transmit};

use super::driver::enqueue;
use super::inbox::{Passed, PassedDatagram};
use super::incoming::ReceivedDatagram;
use super::state::{EndpointState, SharedEndpoint};
use crate::connection::{ConnectionRef, SharedConnection};
use crate::runtime::UdpSocket;

/// The delivery of a batch.
pub(super) struct Delivery<'d> {
    pub(super) shared: &'d Arc<SharedEndpoint>,
    pub(super) state: &'d mut EndpointState,
    /// Connections to process.
    pub(super) queue: &'d mut VecDeque<Arc<SharedConnection>>,
    /// Kept for its capacity.
    pub(super) reply: &'d mut Vec<u8>,
    pub(super) woken: &'d mut Vec<Waker>,
    pub(super) socket: &'d dyn UdpSocket,
    pub(super) now: Instant,
    pub(super) unix_time_s: u64,
}

impl Delivery<'_> {
    /// Delivers a datagram of the socket.
    pub(super) fn deliver(&mut self, datagram: ReceivedDatagram<'_>) {
        let ReceivedDatagram {
            tuple,
            ecn,
            payload,
        } = datagram;
        let proto = &mut self.state.proto;
        let route = proto.route(self.now, self.unix_time_s, tuple, ecn, payload, self.reply);
        self.follow(
            route,
            ReceivedDatagram {
                tuple,
                ecn,
                payload,
            },
        );
    }

    /// Delivers a datagram that was passed on.
    pub(super) fn deliver_passed(&mut self, datagram: Passed) {
        let PassedDatagram {
            tuple,
            ecn,
            mut payload,
        } = match datagram {
            Passed::ByWorker(datagram) => datagram,
            Passed::ByProcess(mut datagram) => {
                return self.deliver(ReceivedDatagram {
                    tuple: datagram.tuple,
                    ecn: datagram.ecn,
                    payload: &mut datagram.payload,
                });
            }
        };
        let proto = &mut self.state.proto;
        let route = proto.route_passed(
            self.now,
            self.unix_time_s,
            tuple,
            ecn,
            &mut payload,
            self.reply,
        );
        self.follow(
            route,
            ReceivedDatagram {
                tuple,
                ecn,
                payload: &mut payload,
            },
        );
    }

    fn follow(&mut self, route: Route, datagram: ReceivedDatagram<'_>) {
        let ReceivedDatagram {
            tuple,
            ecn,
            payload,
        } = datagram;
        let now = self.now;
        match route {
            Route::Connection(handle) => {
                if let Some(connection) = self.state.connection(handle) {
                    let mut inner = connection.lock();
                    inner.proto.handle_datagram(now, tuple, ecn, payload);
                    enqueue(self.queue, connection, &mut inner);
                }
            }
            Route::Accepted(handle, proto) => {
                let connection = self.shared.adopt(self.state, handle, Side::Server, proto);
                enqueue(self.queue, &connection, &mut connection.lock());
                self.state.follow_orders(now, self.queue);
                self.shared.wake_ordered(self.state);
                let connection = ConnectionRef::new(connection);
                self.state.push_accepted(connection, self.woken);
            }
            Route::Reply => send_reply(self.socket, tuple, self.reply),
            Route::Worker(worker) => {
                self.shared.pass_to(worker, passed(tuple, ecn, payload));
            }
            Route::Predecessor => {
                if let Some(predecessor) = &self.state.predecessor {
                    predecessor.pass_on(passed(tuple, ecn, payload));
                }
            }
            Route::Drop => {}
        }
    }
}

fn passed(tuple: FourTuple, ecn: Option<EcnCodepoint>, payload: &[u8]) -> PassedDatagram {
    PassedDatagram {
        tuple,
        ecn,
        payload: payload.to_vec(),
    }
}

/// Sends a datagram of the endpoint itself; it is dropped if the socket is full.
fn send_reply(socket: &dyn UdpSocket, tuple: FourTuple, reply: &[u8]) {
    let transmit = Transmit {
        tuple,
        ecn: None::<EcnCodepoint>,
        size: reply.len(),
        segment_size: None,
    };
    socket.try_send(&transmit, reply).ok();
}
