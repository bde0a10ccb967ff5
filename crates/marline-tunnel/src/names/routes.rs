//! The routes of a client's tunnel, those to addresses of selected names included.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::Instant;

use super::learned::Learned;
use super::message::Addresses;
use crate::programs::ProgramChoice;
use crate::restore::{Changes, Found, RestoreError, Server};
use crate::routing::{Family, Plan};

/// The facts from which the routes follow.
#[derive(Clone, Debug)]
pub(crate) struct RouteInputs {
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
    /// The families that the host has: packets of these programs go nowhere else.
    pub(crate) of_host: Vec<Family>,
    /// The resolvers of names that are not selected, to which packets go directly.
    pub(crate) direct: Vec<IpAddr>,
    /// Whether all queries of DNS do.
    pub(crate) has_queries: bool,
}

impl RouteInputs {
    fn plan(&self, learned: &Learned, programs: &ProgramChoice) -> Plan {
        let (server, device, families) = (self.server, self.device, &self.families);
        let mut learned = learned.destinations();
        learned.retain(|to| {
            let address = to.addr();
            self.of_host.contains(&Family::of(address)) && !self.direct.contains(&address)
        });
        let destinations = [&self.destinations[..], &learned].concat();
        let mut plan = Plan::new(server, device, families, &destinations);
        if !programs.is_empty() {
            let carried = &self.of_programs;
            plan = plan.with_programs(server, device, families, carried, &self.of_host);
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
    /// Whether packets to names do.
    pub(crate) has_names: bool,
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
    inputs: RouteInputs,
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

    /// Makes the routes that follow from `inputs`, and removes those of before.
    ///
    /// # Errors
    /// See [`RestoreError`]. Those of before stay.
    pub(crate) fn set(&mut self, inputs: RouteInputs) -> Result<(), RestoreError> {
        if self.made.is_none() && self.owner.has_names {
            self.learn_again()?;
        }
        let Owner {
            device,
            host,
            programs,
            ..
        } = &self.owner;
        let plan = inputs.plan(&self.learned, programs);
        match &mut self.made {
            Some(made) => {
                made.changes.replace(inputs.server, plan)?;
                made.inputs = inputs;
            }
            none => {
                let server = Server {
                    host,
                    address: inputs.server,
                };
                let changes = Changes::make(device, server, plan, programs)?;
                *none = Some(Made { inputs, changes });
            }
        }
        Ok(())
    }

    /// Keeps the addresses that a killed client has left: programs may still use them.
    fn learn_again(&mut self) -> Result<(), RestoreError> {
        let left = Found::of(&self.owner.device)?;
        let all = left.iter().flat_map(Found::addresses).collect();
        let found = Addresses {
            all,
            lifetime: Duration::ZERO,
        };
        // Where there is no room, they are found again.
        let _ = self.learned.learn(&found, Instant::now());
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
        let plan = made.inputs.plan(&self.learned, &self.owner.programs);
        let followed = made.changes.replace(made.inputs.server, plan);
        self.is_behind = followed.is_err();
        followed
    }
}
