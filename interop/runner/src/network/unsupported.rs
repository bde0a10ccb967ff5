//! Stub for systems without network namespaces.

use std::io;
use std::net::IpAddr;
use std::process::{Child, Command};

use crate::cases::Links;

pub(crate) fn prepare() {}

/// A network that cannot be created.
pub(crate) enum Network {}

impl Network {
    pub(crate) fn start() -> anyhow::Result<Result<Self, String>> {
        Ok(Err("only Linux has network namespaces".to_owned()))
    }

    pub(crate) fn server_address(&self) -> IpAddr {
        match *self {}
    }

    pub(crate) fn client_addresses(&self) -> Vec<IpAddr> {
        match *self {}
    }

    pub(crate) fn spawn(&self, _serves: bool, _command: &mut Command) -> io::Result<Child> {
        match *self {}
    }

    pub(crate) fn finish(self) -> Links {
        match self {}
    }
}
