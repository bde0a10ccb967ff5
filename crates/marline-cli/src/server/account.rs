//! The user that a server of root becomes.
//!
//! The effective user changes before anything but the configuration file is opened, and before there are threads: what this
//! user may not open, at the start or at a later reload, is an error at the start. The process keeps the right to bind ports
//! until its sockets are open. Then the real and the saved user change as well, in all threads, and with them go all
//! capabilities.

use crate::failure::Failure;

/// A user and a group that the configuration names.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    user: String,
    #[cfg(target_os = "linux")]
    uid: nix::unistd::Uid,
    #[cfg(target_os = "linux")]
    gid: nix::unistd::Gid,
}

/// The rights of root that are left while sockets are opened.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct Privileges(Option<Account>);

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;

    use nix::unistd::{
        Group, Uid, User, getegid, geteuid, initgroups, seteuid, setresgid, setresuid,
    };
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};

    use super::{Account, Failure, Privileges};

    impl Account {
        /// The account of `user`, with its group unless another is given.
        ///
        /// # Errors
        /// One of them does not exist, or there is a group without a user.
        pub(crate) fn find(
            user: Option<&str>,
            group: Option<&str>,
        ) -> Result<Option<Self>, Failure> {
            let Some(name) = user else {
                return match group {
                    Some(_) => Err(Failure::Usage(
                        "group needs user; set user as well".to_owned(),
                    )),
                    None => Ok(None),
                };
            };
            let unreadable =
                |error| Failure::Failed(format!("cannot look up the user {name}: {error}"));
            let missing = |what, name| {
                Failure::Usage(format!("{what}: there is no {what} {name} on this machine"))
            };
            let user = User::from_name(name).map_err(unreadable)?;
            let user = user.ok_or_else(|| missing("user", name))?;
            let gid = match group {
                None => user.gid,
                Some(group) => {
                    let found = Group::from_name(group).map_err(unreadable)?;
                    found.ok_or_else(|| missing("group", group))?.gid
                }
            };
            Ok(Some(Self {
                user: user.name,
                uid: user.uid,
                gid,
            }))
        }

        /// Whether this process can become this user.
        pub(crate) fn is_within_reach(&self) -> bool {
            geteuid().is_root() || (geteuid() == self.uid && getegid() == self.gid)
        }

        /// Becomes this user, and keeps only the right to bind ports. There must be no threads yet: children of a thread have its
        /// capabilities, and no other thread gets them.
        ///
        /// # Errors
        /// The process is not root's.
        pub(crate) fn assume(self) -> Result<Privileges, Failure> {
            if geteuid() == self.uid && getegid() == self.gid {
                return Ok(Privileges(None));
            }
            let name = &self.user;
            if !geteuid().is_root() {
                return Err(Failure::Usage(format!(
                    "user: only root can become {name}, and this is a process of the user {}; start it as root, or leave user out",
                    geteuid()
                )));
            }
            self.become_effective()
                .map_err(|error| Failure::Failed(format!("user: cannot become {name}: {error}")))?;
            Ok(Privileges(Some(self)))
        }

        fn become_effective(&self) -> Result<(), String> {
            let text = |error: nix::Error| error.to_string();
            let name = CString::new(self.user.as_str()).map_err(|error| error.to_string())?;
            // Groups first: whoever is no longer root cannot change them.
            initgroups(&name, self.gid).map_err(text)?;
            setresgid(self.gid, self.gid, self.gid).map_err(text)?;
            setresuid(Uid::from_raw(0), self.uid, Uid::from_raw(0)).map_err(text)?;
            let failed = |error: rustix::io::Errno| error.to_string();
            let mut sets = capabilities(None).map_err(failed)?;
            sets.effective = sets.permitted & CapabilitySet::NET_BIND_SERVICE;
            set_capabilities(None, sets).map_err(failed)?;
            set_no_new_privs(true).map_err(failed)
        }

        fn become_real(&self) -> Result<(), String> {
            setresuid(self.uid, self.uid, self.uid).map_err(|error| error.to_string())?;
            match !self.uid.is_root() && seteuid(Uid::from_raw(0)).is_ok() {
                true => Err("the process could become root again".to_owned()),
                false => Ok(()),
            }
        }
    }

    impl Privileges {
        /// Gives up what is left of root's rights, in all threads.
        ///
        /// # Errors
        /// The system refuses; the server must not go on.
        pub(crate) fn drop_all(self) -> Result<(), Failure> {
            let Some(account) = &self.0 else {
                return Ok(());
            };
            account.become_real().map_err(|error| {
                Failure::Failed(format!("user: cannot become {}: {error}", account.user))
            })
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Account {
    pub(crate) fn is_within_reach(&self) -> bool {
        false
    }

    /// No account; other systems than Linux have no such rights to give up one after another.
    pub(crate) fn find(user: Option<&str>, group: Option<&str>) -> Result<Option<Self>, Failure> {
        match user.or(group) {
            None => Ok(None),
            Some(_) => Err(Failure::Usage(
                "user and group work on Linux; start the server as the user it is to be".to_owned(),
            )),
        }
    }

    pub(crate) fn assume(self) -> Result<Privileges, Failure> {
        Ok(Privileges(Some(self)))
    }
}

#[cfg(not(target_os = "linux"))]
impl Privileges {
    pub(crate) fn drop_all(self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Privileges {
    /// Those of a process that stays what it is.
    pub(crate) fn unchanged() -> Self {
        Self(None)
    }

    /// `failure`, with the user that the process has become.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        match (failure, &self.0) {
            (Failure::Failed(reason), Some(account)) => {
                Failure::Failed(format!("{reason} (as the user {})", account.user))
            }
            (failure, _) => failure,
        }
    }
}
