//! Real time between network namespaces. Without the privilege, tests say `skipped: why`.

#![cfg(target_os = "linux")]

mod link;
mod setup;

mod ping;
mod tcp;
