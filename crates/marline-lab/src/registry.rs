//! Policies and models of a program of one's own.

use std::fmt;
use std::sync::Arc;

use marline::congestion::{CONTROLLERS, ControllerFactory};
use marline::scheduling::{path, stream};
use marline::settings::{Make, Policy};
use marline_link::{MODELS, MakeModel};

/// Policies and models that a program adds to those of this library. Once [installed](Self::install), experiments know them
/// by their names.
///
/// Each is an [`Entry`](marline::settings::Entry), as those of marline: a name, a line about it, its parameters, and how it is made.
/// `docs/own-policies.md` shows all of it, from an empty crate to a report.
///
/// ```
/// use std::sync::Arc;
///
/// use marline::congestion::{ControllerFactory, NewReno, PerPath};
/// use marline::settings::Entry;
/// use marline_lab::Registry;
///
/// static MINE: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain("mine", "A controller", |()| {
///     Arc::new(PerPath(|config| Box::new(NewReno::new(config))))
/// });
///
/// // Its `name()` is still that of New Reno, which results would show.
/// let error = Registry::default().controller(&MINE).install().unwrap_err();
/// assert!(error.to_string().contains("newreno"));
/// ```
#[derive(Default)]
pub struct Registry {
    additions: Vec<Addition>,
}

/// A policy or model.
enum Addition {
    Controller(&'static dyn Policy<Arc<dyn ControllerFactory>>),
    PathScheduler(&'static dyn Policy<Make<dyn path::PathScheduler>>),
    StreamScheduler(&'static dyn Policy<Make<dyn stream::StreamScheduler>>),
    LinkModel(&'static dyn Policy<MakeModel>),
}

/// The reason why a policy or model cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(String);

impl Registry {
    /// Adds a congestion controller, for `cc`.
    #[must_use]
    pub fn controller(self, entry: &'static dyn Policy<Arc<dyn ControllerFactory>>) -> Self {
        self.with(Addition::Controller(entry))
    }

    /// Adds a scheduler of paths, for `multipath.scheduler`.
    #[must_use]
    pub fn path_scheduler(self, entry: &'static dyn Policy<Make<dyn path::PathScheduler>>) -> Self {
        self.with(Addition::PathScheduler(entry))
    }

    /// Adds a scheduler of streams, for `stream_scheduler`.
    #[must_use]
    pub fn stream_scheduler(
        self,
        entry: &'static dyn Policy<Make<dyn stream::StreamScheduler>>,
    ) -> Self {
        self.with(Addition::StreamScheduler(entry))
    }

    /// Adds a [model of packets](marline_link::PacketModel), for `custom` of links.
    #[must_use]
    pub fn link_model(self, entry: &'static dyn Policy<MakeModel>) -> Self {
        self.with(Addition::LinkModel(entry))
    }

    fn with(mut self, addition: Addition) -> Self {
        self.additions.push(addition);
        self
    }

    /// Makes them known to all of this process, for as long as it runs. It has to be called before settings are read.
    ///
    /// # Errors
    /// A name is taken or is not one, or a policy says another name of itself.
    pub fn install(self) -> Result<(), RegistryError> {
        for addition in self.additions {
            addition.install().map_err(RegistryError)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.additions.iter().map(Addition::name);
        f.debug_list().entries(names).finish()
    }
}

impl Addition {
    fn name(&self) -> &'static str {
        match self {
            Self::Controller(entry) => entry.name(),
            Self::PathScheduler(entry) => entry.name(),
            Self::StreamScheduler(entry) => entry.name(),
            Self::LinkModel(entry) => entry.name(),
        }
    }

    fn install(self) -> Result<(), String> {
        let name = self.name();
        match self {
            Self::Controller(entry) => {
                refuse_other_name(name, entry.make_default().spec().name())?;
                CONTROLLERS.add(entry)
            }
            Self::PathScheduler(entry) => {
                refuse_other_name(name, entry.make_default()().spec().name())?;
                path::SCHEDULERS.add(entry)
            }
            Self::StreamScheduler(entry) => {
                refuse_other_name(name, entry.make_default()().spec().name())?;
                stream::SCHEDULERS.add(entry)
            }
            Self::LinkModel(entry) => MODELS.add(entry),
        }
    }
}

/// Results show the name that a policy says of itself, and settings are read again from there.
fn refuse_other_name(entry: &str, own: &str) -> Result<(), String> {
    match entry == own {
        true => Ok(()),
        false => Err(format!(
            "the entry {entry} makes a policy whose name() is {own}; let it return the name of the entry"
        )),
    }
}
