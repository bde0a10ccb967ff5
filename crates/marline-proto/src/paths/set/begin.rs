//! Start of paths (draft-ietf-quic-multipath-21, section 3.1).

use marline_wire::PathId;

use super::{AddedPath, NewPath, Openable, PathSet, PathStart, recovery_config, validation_times};
use crate::paths::extension::OpenPathError;
use crate::paths::path::PathIds;
use crate::paths::{AmplificationLimit, Path, Slot, Stage, Validation};
use crate::recovery::Recovery;
use crate::rng::ConnectionRng;
use crate::time::Instant;

impl PathSet {
    /// Client: removes and returns the path to open next. `is_forbidden` is set if the peer's
    /// disable_active_migration covers the address of the path.
    ///
    /// # Errors
    ///
    /// The reason why there is none; a blocked frame is sent to the peer.
    pub(crate) fn take_next(
        &mut self,
        is_confirmed: bool,
        is_forbidden: bool,
    ) -> Result<Openable, OpenPathError> {
        let Some(extension) = &mut self.extension else {
            return Err(OpenPathError::NotNegotiated);
        };
        if !is_confirmed {
            extension.set_path_wanted();
            return Err(OpenPathError::NotNegotiated);
        }
        if is_forbidden {
            return Err(OpenPathError::Forbidden);
        }
        let id = extension.next_path()?;
        let taken = extension.reserve.take(id);
        taken
            .and_then(Openable::new)
            .ok_or(OpenPathError::NoConnectionIds)
    }

    /// Server: removes and returns the path that the client opens.
    pub(crate) fn take_for_client(&mut self, id: PathId) -> Option<Openable> {
        let reserved = self.extension.as_mut()?.reserve.take(id)?;
        Openable::new(reserved)
    }

    /// Adds a path, to be validated; returns its slot. Draws a seed for its controller, and the first packet
    /// number to skip.
    ///
    /// Between addresses that another path has validated, it counts as validated: it copies the results of
    /// that one, and only has to be [opened](Self::on_valid).
    pub(crate) fn add(
        &mut self,
        now: Instant,
        new: NewPath<'_>,
        rng: &mut ConnectionRng,
    ) -> AddedPath {
        let NewPath {
            config, addresses, ..
        } = new;
        let is_proven = |path: &&Path| {
            let active = &path.tuples.active;
            path.is_open()
                && active.addresses == addresses
                && active.amplification.is_validated()
                && active.validation.is_none()
        };
        let known = self.list.iter().find(is_proven);
        let known = known.map(|path| (path.tuples.active.mtu.clone(), *path.recovery.rtt()));
        let is_proven = known.is_some();
        let Openable { reserved, remote } = new.openable;
        let mut ids = PathIds {
            local: reserved.local,
            remote,
            active_local: new.active_local,
        };
        ids.local.set_limit(new.active_connection_id_limit);
        ids.remote.begin_use();
        self.issue_ids = true;
        let mut tuple = self.new_tuple(config, addresses);
        tuple.mtu.set_peer_limit(new.max_udp_payload_size);
        let mut initial_rtt = config.initial_rtt;
        if let Some((mtu, rtt)) = &known {
            tuple.mtu.adopt(mtu);
            if rtt.has_sample() {
                initial_rtt = rtt.smoothed();
            }
        }
        let start = PathStart {
            initial_window: new.initial_window,
            datagram_size: tuple.mtu.current(),
            initial_rtt,
            seed: rng.seed(),
        };
        let recovery = Recovery::new(recovery_config(config, &*self.controllers, start));
        let skip_at = match config.skip_packet_numbers {
            true => rng.next_skip(0),
            false => u64::MAX,
        };
        let mut ack_policy = (config.ack_policy)();
        if let Some(requested) = new.ack_request {
            ack_policy.on_frequency(requested);
        }
        let mut path = Path::new(reserved.id, ids, tuple, recovery, ack_policy, skip_at);
        path.preference = reserved.preference;
        path.stage = Stage::Opening;
        let active = &mut path.tuples.active;
        if is_proven {
            active.amplification = AmplificationLimit::validated();
            path.ping_due = true;
        } else {
            let pto = path.recovery.pto(new.max_ack_delay);
            active.validation = Some(Validation::new(now, validation_times(pto, config)));
        }
        AddedPath {
            at: self.list.insert(path),
            is_proven,
        }
    }

    /// Called when a path is validated: it may carry data. Returns whether it was not validated before.
    pub(crate) fn on_valid(&mut self, at: Slot) -> bool {
        let path = &mut self.list[at];
        let is_news = path.stage == Stage::Opening;
        if is_news {
            path.stage = Stage::Open;
            path.recovery.reset_pto_count();
            self.list.find_main();
        }
        is_news
    }

    /// Client: whether another path besides the first is to be opened now; it then counts as opened.
    pub(crate) fn take_due_sibling(&mut self) -> bool {
        // A preferred address of the server is probed first.
        let is_probing = self.list.main().tuples.probed.is_some();
        let extension = self.extension.as_mut().filter(|_| !is_probing);
        extension.is_some_and(|extension| extension.take_due_sibling())
    }

    /// Whether a path can be opened after an attempt failed; `true` once.
    pub(crate) fn take_wanted_path(&mut self) -> bool {
        let extension = self.extension.as_mut();
        extension.is_some_and(|extension| extension.take_wanted_path())
    }
}
