//! The routes of a client's tunnel, those to addresses of selected names included.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;
use tokio::time::Instant;

use crate::names::learned::Learned;
use crate::names::message::Addresses;
use crate::programs::ProgramChoice;
use crate::restore::{Changes, RestoreError};
use crate::routing::{Family, Plan};

/// What the routes follow from.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    /// The server.
    pub(crate) server: IpAddr,
    /// The number of the device.
    pub(crate) device: u32,
    /// The families that the tunnel has.
    pub(crate) families: Vec<Family>,
    /// The destinations whose packets go into it.
    pub(crate) destinations: Vec<IpNet>,
    /// Those to which packets of selected programs do.
    pub(crate) of_programs: Vec<IpNet>,
    /// The families whose packets of these programs go nowhere else.
    pub(crate) confined: Vec<Family>,
    /// Whether all queries of DNS do.
    pub(crate) has_queries: bool,
}

impl Ways {
    fn plan(&self, learned: &Learned, programs: &ProgramChoice) -> Plan {
        let (server, device, families) = (self.server, self.device, &self.families);
        let destinations = [&self.destinations[..], &learned.destinations()].concat();
        let mut plan = Plan::new(server, device, families, &destinations);
        if !programs.is_empty() {
            let (carried, confined) = (&self.of_programs, &self.confined);
            plan = plan.with_programs(server, device, families, carried, confined);
        }
        match self.has_queries {
            true => plan.with_all_queries(),
            false => plan,
        }
    }
}

/// The tunnel that the routes are of.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// Its device.
    pub(crate) device: String,
    /// Its server, as the user has written it.
    pub(crate) host: String,
    /// The programs whose packets go into it.
    pub(crate) programs: ProgramChoice,
}

/// The routes. Dropped, they are removed.
pub(crate) struct Routes {
    owner: Owner,
    learned: Learned,
    made: Option<Made>,
    /// Whether routes to addresses that are learned are missing.
    is_behind: bool,
}

struct Made {
    ways: Ways,
    changes: Changes,
}

/// Why the routes to addresses are not made.
#[derive(Debug)]
pub(crate) struct NotLearned;

impl Routes {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            learned: Learned::default(),
            made: None,
            is_behind: false,
        }
    }

    /// Makes the routes of these ways, and removes those of before.
    ///
    /// # Errors
    /// See [`RestoreError`]. Those of before stay.
    pub(crate) fn set(&mut self, ways: Ways) -> Result<(), RestoreError> {
        let plan = ways.plan(&self.learned, &self.owner.programs);
        match &mut self.made {
            Some(made) => {
                made.changes.replace(plan)?;
                made.ways = ways;
            }
            none => {
                let Owner {
                    device,
                    host,
                    programs,
                } = &self.owner;
                let changes = Changes::make(device, host, plan, programs)?;
                *none = Some(Made { ways, changes });
            }
        }
        Ok(())
    }

    /// Makes routes to the addresses of a selected name.
    ///
    /// # Errors
    /// There is no room, or the kernel refuses.
    pub(crate) fn learn(&mut self, found: &Addresses, now: Instant) -> Result<(), NotLearned> {
        let is_new = self.learned.learn(found, now).map_err(|_| NotLearned)?;
        match is_new || self.is_behind {
            true => self.follow().map_err(|_| NotLearned),
            false => Ok(()),
        }
    }

    /// Removes routes to addresses that are out of date, but those that are in use.
    ///
    /// # Errors
    /// See [`RestoreError`].
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        in_use: impl FnOnce() -> HashSet<IpAddr>,
    ) -> Result<(), RestoreError> {
        match self.learned.expire(now, &in_use()) {
            true => self.follow(),
            false => Ok(()),
        }
    }

    fn follow(&mut self) -> Result<(), RestoreError> {
        let Some(made) = &mut self.made else {
            return Ok(());
        };
        let followed = made
            .changes
            .replace(made.ways.plan(&self.learned, &self.owner.programs));
        self.is_behind = followed.is_err();
        followed
    }
}
