//! The side of the process that takes over.

use std::env;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use marline::{PassOn, PassedDatagram};
use socket2::{SockRef, Type};
use tokio::time::timeout;

use super::super::stop::Stop;
use super::super::{Context, GivenSockets, Handle};
use super::VARIABLE;
use super::channel::Channel;
use super::message::{GO, Hello, MAX_MESSAGE, RUNNING, SERVING, encode_datagram, encode_ready};
use crate::limits;

/// The process that this one takes over from, which serves meanwhile.
#[derive(Debug)]
pub struct Predecessor {
    channel: Channel,
    sockets: GivenSockets,
    secret: [u8; 32],
}

impl Predecessor {
    /// The process that has started this one by [`upgrade`](super::upgrade); `None` if none has. Standard input is empty from now
    /// on.
    ///
    /// # Errors
    /// It does not pass on its sockets.
    pub async fn of_process() -> io::Result<Option<Self>> {
        // Whoever made the channel, even if it has ended since: a process that this one starts has another standard input.
        let maker = rustix::net::sockopt::socket_peercred(io::stdin());
        let maker = maker.ok().map(|maker| maker.pid.to_string());
        if maker.is_none() || env::var(VARIABLE).ok() != maker {
            return Ok(None);
        }
        let end = io::stdin().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        let channel = Channel::of(end)?;
        let mut sockets = GivenSockets::of_predecessor();
        let receiving = receive(&channel, &mut sockets);
        let secret = timeout(limits::UPGRADE_TAKE_OVER, receiving).await??;
        Ok(Some(Self {
            channel,
            sockets,
            secret,
        }))
    }

    /// Its sockets, which are taken. Endpoints of [`Server::bind_given`](crate::server::Server::bind_given) read them from
    /// [`take_over`](Self::take_over) on.
    pub fn take_sockets(&mut self) -> GivenSockets {
        std::mem::take(&mut self.sockets)
    }

    /// The secret of which its keys are made.
    pub fn secret(&self) -> [u8; 32] {
        self.secret
    }

    /// Has the predecessor stop, and `servers`, which have its sockets, begin. What arrives for its connections is passed on to
    /// it. If it has ended, `servers` begin alone. It stops once they [run](crate::server::Server::run).
    ///
    /// # Errors
    /// It answers in another way than a predecessor.
    pub async fn take_over(self, servers: &[Handle]) -> io::Result<()> {
        let Self { channel, .. } = self;
        let contexts: Vec<_> = servers
            .iter()
            .filter_map(|handle| handle.context.upgrade())
            .collect();
        let endpoints = contexts.iter().flat_map(|context| &context.endpoints);
        let taken = endpoints.filter_map(|quic| Some(quic.endpoints.first()?.local_addr()));
        let ready = encode_ready(taken);
        let mut message = [0; 1];
        let go = async {
            channel.send(&ready, &[]).await?;
            channel.receive(&mut message, &mut Vec::new()).await
        };
        let is_there = match go.await {
            Ok(0) => false,
            Ok(_) if message == GO => true,
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            // It has ended.
            Err(error) if error.kind() != io::ErrorKind::InvalidData => false,
            Err(error) => return Err(error),
        };
        let channel = Arc::new(channel);
        let ended = Stop::default();
        for context in &contexts {
            context.take_over_sessions();
            for endpoint in context.quic_endpoints() {
                if is_there {
                    let to = ToPredecessor {
                        channel: Arc::clone(&channel),
                        bound: endpoint.local_addr(),
                    };
                    endpoint.set_predecessor(Some(Arc::new(to)));
                }
            }
            if is_there {
                // Once for each server.
                let _ = context.takeover.predecessor.set(ended.clone());
            }
        }
        if is_there {
            // Datagrams follow it. If it cannot be sent, the predecessor has ended, which is seen next.
            let _ = channel.send(SERVING, &[]).await;
        }
        for context in &contexts {
            context
                .quic_endpoints()
                .for_each(marline::Endpoint::start_receiving);
        }
        if is_there {
            tokio::spawn(report_running(Arc::clone(&channel), servers.to_vec()));
            let contexts = contexts.iter().map(Arc::downgrade).collect();
            tokio::spawn(watch(channel, ended, contexts));
        }
        Ok(())
    }
}

/// Has the predecessor stop when each worker of `servers` accepts connections.
async fn report_running(channel: Arc<Channel>, servers: Vec<Handle>) {
    for server in servers {
        let Some(context) = server.context.upgrade() else {
            return;
        };
        let runs = context.takeover.runs.stopped();
        drop(context);
        runs.await;
        server.workers_run().await;
    }
    // If it cannot be sent, the predecessor has ended.
    let _ = channel.send(RUNNING, &[]).await;
}

/// Receives the sockets, and returns the secret.
async fn receive(channel: &Channel, sockets: &mut GivenSockets) -> io::Result<[u8; 32]> {
    let mut message = vec![0; MAX_MESSAGE];
    let mut descriptors = Vec::new();
    let len = channel.receive(&mut message, &mut descriptors).await?;
    let hello = Hello::decode(&message[..len])?;
    while descriptors.len() < hello.sockets {
        if channel.receive(&mut message, &mut descriptors).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    for descriptor in descriptors {
        add(descriptor, sockets)?;
    }
    Ok(hello.secret)
}

fn add(descriptor: OwnedFd, sockets: &mut GivenSockets) -> io::Result<()> {
    match SockRef::from(&descriptor).r#type()? {
        Type::STREAM => sockets.add_tcp(TcpListener::from(descriptor), None),
        _ => sockets.add_udp(UdpSocket::from(descriptor), None),
    }
}

/// Waits until the predecessor has ended. Nothing is passed on to it then.
async fn watch(channel: Arc<Channel>, ended: Stop, contexts: Vec<Weak<Context>>) {
    while let Ok(1..) = channel.receive(&mut [0; 1], &mut Vec::new()).await {}
    for context in contexts.iter().filter_map(Weak::upgrade) {
        for endpoint in context.quic_endpoints() {
            endpoint.set_predecessor(None);
        }
    }
    ended.stop();
}

/// Passes on the datagrams that arrive at an address.
struct ToPredecessor {
    channel: Arc<Channel>,
    bound: SocketAddr,
}

impl PassOn for ToPredecessor {
    fn pass_on(&self, datagram: PassedDatagram) {
        encode_datagram(self.bound, &datagram, |parts| {
            // It is lost if too many wait, as it would be at a socket.
            let _ = self.channel.try_send(parts);
        });
    }
}

impl fmt::Debug for ToPredecessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToPredecessor")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}
