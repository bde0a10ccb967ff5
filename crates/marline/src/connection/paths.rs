//! Several paths in one connection (draft-ietf-quic-multipath-21).

use std::net::{IpAddr, SocketAddr};

use marline_proto::observe::PathStats;
use marline_proto::scheduling::path::PathStatus;
use marline_proto::{AbandonPathError, ConnectionError, ErrorCode, FourTuple, PathId};
use tokio::sync::oneshot;

use super::Connection;
use crate::endpoint::{in_family_of, in_words_of, sends_from};
use crate::error::OpenPathError;

impl Connection {
    /// Whether the connection may have several paths: both ends want it
    /// ([`TransportConfig::multipath`](crate::TransportConfig::multipath)). Known when
    /// [`connected`](Self::connected).
    pub fn is_multipath(&self) -> bool {
        self.0.lock().proto.is_multipath()
    }

    /// Client: opens a path from the address `local` of this host to `remote`, or to where the
    /// connection goes now if that is `None`. Ready when the path carries data.
    ///
    /// Waits for the handshake to be [`confirmed`](Self::confirmed) first. The endpoint must be bound to
    /// an unspecified address, or to `local`. Several paths may share their addresses.
    ///
    /// Dropping the future does not take the path back: [`events`](Self::events) tells what becomes of it.
    ///
    /// # Errors
    /// There is no such path, or not yet, or it does not work: see [`OpenPathError`]. The connection goes
    /// on without it.
    pub async fn open_path(
        &self,
        local: IpAddr,
        remote: Option<SocketAddr>,
    ) -> Result<PathId, OpenPathError> {
        let lost = OpenPathError::ConnectionLost;
        self.confirmed().await.map_err(lost)?;
        let tuple = self.tuple_from(local, remote)?;
        // A socket may let the system choose another address where this one is missing.
        let probe = SocketAddr::new(local, 0);
        if let Err(cause) = self.0.runtime().bind(probe) {
            return Err(OpenPathError::NoSuchAddress { local, cause });
        }
        let (id, validated) = self.begin_path(tuple)?;
        match validated.await {
            Ok(Ok(())) => Ok(id),
            Ok(Err(error)) => Err(OpenPathError::Failed(error)),
            Err(_) => Err(lost(
                self.close_reason()
                    .unwrap_or(ConnectionError::LocallyClosed),
            )),
        }
    }

    /// Abandons a path, for good: its number is not used again. What was on its way there takes the
    /// other paths. The peer sees `error`: [`ErrorCode::APPLICATION_ABANDON_PATH`] says that the
    /// application wanted it.
    ///
    /// # Errors
    /// There is no such path (any more), or no other that works: [`close`](Self::close) the connection
    /// instead.
    pub fn abandon_path(&self, id: PathId, error: ErrorCode) -> Result<(), AbandonPathError> {
        let now = self.0.now();
        let mut state = self.0.lock();
        if state.error.is_some() {
            return Err(AbandonPathError::NoSuchPath);
        }
        state.proto.abandon_path(now, id, error)?;
        self.0.touch(&mut state);
        Ok(())
    }

    /// Says how a path is to be used, to the peer too: a [`Backup`](PathStatus::Backup) carries data only
    /// while no other path works. Nothing happens if there is no such path.
    pub fn set_path_status(&self, id: PathId, status: PathStatus) {
        let mut state = self.0.lock();
        if state.error.is_none() {
            state.proto.set_path_status(id, status);
            self.0.touch(&mut state);
        }
    }

    /// What each path has done so far and how it stands, as in [`stats`](Self::stats). Abandoned paths
    /// are among them until late packets can no longer come.
    pub fn paths(&self) -> Vec<PathStats> {
        self.stats().paths
    }

    /// [`open_path`](Self::open_path) to where the connection goes now, without waiting:
    /// [`events`](Self::events) tells what becomes of the path.
    pub(crate) fn start_path(&self, local: IpAddr) -> Result<PathId, OpenPathError> {
        let tuple = self.tuple_from(local, None)?;
        self.begin_path(tuple).map(|(id, _)| id)
    }

    fn begin_path(
        &self,
        tuple: FourTuple,
    ) -> Result<(PathId, oneshot::Receiver<Result<(), ErrorCode>>), OpenPathError> {
        let now = self.0.now();
        let mut state = self.0.lock();
        if let Some(error) = &state.error {
            return Err(OpenPathError::ConnectionLost(error.clone()));
        }
        let begun = state.proto.open_path(now, tuple);
        // A refusal may have the peer told what is missing.
        self.0.touch(&mut state);
        let id = begun?;
        let (tell, validated) = oneshot::channel();
        state.opening.insert(id, tell);
        Ok((id, validated))
    }

    /// The addresses as the endpoint's socket writes them.
    fn tuple_from(
        &self,
        local: IpAddr,
        remote: Option<SocketAddr>,
    ) -> Result<FourTuple, OpenPathError> {
        let (bound, present) = {
            let state = self.0.lock();
            let proto = &state.proto;
            (state.bound, (proto.local_address(), proto.remote_address()))
        };
        let here = local.to_canonical();
        if !sends_from(bound, local) {
            return Err(OpenPathError::BoundElsewhere {
                bound: bound.ip(),
                local,
            });
        }
        let remote = remote.unwrap_or(present.1);
        let differ = OpenPathError::FamiliesDiffer { local, remote };
        let Some(to) = in_family_of(bound, remote) else {
            return Err(differ);
        };
        if here.is_ipv4() != to.ip().to_canonical().is_ipv4() {
            return Err(differ);
        }
        // The system has its own way to write addresses of IPv4 on a socket for both families.
        let ip = match (present.0.ip(), here) {
            (known, here) if known.to_canonical() == here => known,
            (_, here) => in_words_of(bound, here),
        };
        Ok(FourTuple {
            local: SocketAddr::new(ip, bound.port()),
            remote: to,
        })
    }
}
