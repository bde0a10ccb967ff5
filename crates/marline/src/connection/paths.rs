//! Several paths in one connection (draft-ietf-quic-multipath-21).

use std::net::{IpAddr, SocketAddr};

use marline_proto::observe::PathStats;
use marline_proto::scheduling::path::PathStatus;
use marline_proto::{AbandonPathError, ConnectionError, ErrorCode, FourTuple, PathId};
use tokio::sync::oneshot;

use super::Connection;
use crate::endpoint::{can_send_from, local_for_socket, remote_for_socket};
use crate::error::OpenPathError;

/// A path whose validation is in progress.
struct OpeningPath {
    id: PathId,
    /// The outcome of the validation.
    validated: oneshot::Receiver<Result<(), ErrorCode>>,
}

impl Connection {
    /// Whether the connection may have several paths: both ends want it
    /// ([`TransportConfig::multipath`](crate::TransportConfig::multipath)). Known when
    /// [`connected`](Self::connected).
    pub fn is_multipath(&self) -> bool {
        self.0.lock().proto.is_multipath()
    }

    /// Client: opens a path from the address `local` of this host to `remote`, or to the present remote
    /// address if that is `None`. Ready when the path is validated.
    ///
    /// Waits for the handshake to be [`confirmed`](Self::confirmed) first. The endpoint must be bound to
    /// an unspecified address, or to `local`. Several paths may share their addresses.
    ///
    /// Dropping the future does not abandon the path: [`events`](Self::events) reports its outcome.
    ///
    /// # Errors
    /// The path cannot be opened, or not yet, or its validation failed: see [`OpenPathError`]. The
    /// connection continues on its other paths.
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
        let OpeningPath { id, validated } = self.begin_path(tuple)?;
        match validated.await {
            Ok(Ok(())) => Ok(id),
            Ok(Err(error)) => Err(OpenPathError::Failed(error)),
            Err(_) => Err(lost(
                self.close_reason()
                    .unwrap_or(ConnectionError::LocallyClosed),
            )),
        }
    }

    /// Abandons a path; its path ID is not used again. Data in flight on it is retransmitted on
    /// other paths. The peer gets `error`; [`ErrorCode::APPLICATION_ABANDON_PATH`] means that the
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

    /// Sets the status of a path and sends it to the peer: a [`Backup`](PathStatus::Backup) carries data only
    /// while no other path works. Does nothing if there is no such path.
    pub fn set_path_status(&self, id: PathId, status: PathStatus) {
        let mut state = self.0.lock();
        if state.error.is_none() {
            state.proto.set_path_status(id, status);
            self.0.touch(&mut state);
        }
    }

    /// Statistics and state of each path, as in [`stats`](Self::stats). Abandoned paths are included until
    /// their state is discarded, 3 PTO later.
    pub fn paths(&self) -> Vec<PathStats> {
        self.stats().paths
    }

    /// [`open_path`](Self::open_path) to the present remote address, without waiting:
    /// [`events`](Self::events) reports the outcome.
    pub(crate) fn start_path(&self, local: IpAddr) -> Result<PathId, OpenPathError> {
        let tuple = self.tuple_from(local, None)?;
        self.begin_path(tuple).map(|path| path.id)
    }

    fn begin_path(&self, tuple: FourTuple) -> Result<OpeningPath, OpenPathError> {
        let now = self.0.now();
        let mut state = self.0.lock();
        if let Some(error) = &state.error {
            return Err(OpenPathError::ConnectionLost(error.clone()));
        }
        let begun = state.proto.open_path(now, tuple);
        // After a refusal, a PATHS_BLOCKED or PATH_CIDS_BLOCKED frame may be due.
        self.0.touch(&mut state);
        let id = begun?;
        let (sender, validated) = oneshot::channel();
        state.opening.insert(id, sender);
        Ok(OpeningPath { id, validated })
    }

    /// The addresses in the form that the endpoint's socket uses.
    fn tuple_from(
        &self,
        local: IpAddr,
        remote: Option<SocketAddr>,
    ) -> Result<FourTuple, OpenPathError> {
        let state = self.0.lock();
        let bound = state.bound;
        let present = FourTuple {
            local: state.proto.local_address(),
            remote: state.proto.remote_address(),
        };
        drop(state);
        let canonical = local.to_canonical();
        if !can_send_from(bound, local) {
            return Err(OpenPathError::BoundElsewhere {
                bound: bound.ip(),
                local,
            });
        }
        let remote = remote.unwrap_or(present.remote);
        let differ = OpenPathError::FamiliesDiffer { local, remote };
        let Some(to) = remote_for_socket(bound, remote) else {
            return Err(differ);
        };
        if canonical.is_ipv4() != to.ip().to_canonical().is_ipv4() {
            return Err(differ);
        }
        // A dual-stack socket may report IPv4 addresses as such or mapped into IPv6: keep its form.
        let known = present.local.ip();
        let ip = if known.to_canonical() == canonical {
            known
        } else {
            local_for_socket(bound, canonical)
        };
        Ok(FourTuple {
            local: SocketAddr::new(ip, bound.port()),
            remote: to,
        })
    }
}
