use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::server::account::tests::{account, is_evicted};

/// Some files that can be held.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in 0..20 {
            std::fs::write(directory.path().join(name.to_string()), b"").unwrap();
        }
        Self(directory)
    }

    fn hold(
        &self,
        files: &OpenFiles,
        account: &Account,
        name: u32,
    ) -> Result<HeldFile, TooManyFiles> {
        let file = File::open(self.0.path().join(name.to_string())).unwrap();
        let metadata = file.metadata().unwrap();
        files.hold(account, file, &metadata)
    }
}

#[cfg(unix)]
#[test]
fn responses_share_one_open_file() {
    let directory = Directory::new();
    let files = OpenFiles::new(2);
    let held: Vec<_> = (1..=4)
        .map(|number| directory.hold(&files, &account(number), 0).unwrap())
        .collect();
    assert_eq!(files.open(), 1);
    assert!(held.iter().all(|one| Arc::ptr_eq(&one.file, &held[0].file)));
    drop(held);
    assert_eq!(files.open(), 0);
}

#[cfg(unix)]
#[test]
fn a_file_that_was_replaced_is_another_one() {
    let directory = Directory::new();
    let files = OpenFiles::new(10);
    let old = directory.hold(&files, &account(1), 0).unwrap();
    std::fs::rename(directory.0.path().join("1"), directory.0.path().join("0")).unwrap();
    let new = directory.hold(&files, &account(1), 0).unwrap();
    assert!(!Arc::ptr_eq(&old.file, &new.file));
    assert_eq!(files.open(), 2);
}

#[test]
fn one_client_cannot_hold_all_files() {
    let directory = Directory::new();
    let files = OpenFiles::new(10);
    let held: Vec<_> = (0..20)
        .filter_map(|name| directory.hold(&files, &account(1), name).ok())
        .collect();
    assert_eq!(held.len(), 5);
    let other = directory.hold(&files, &account(2), 19);
    assert!(other.is_ok());
    drop(held);
    assert!(directory.hold(&files, &account(1), 10).is_ok());
}

/// Networks hold all files, in shares that halve.
fn used_up(directory: &Directory, files: &OpenFiles) -> Vec<(Account, HeldFile)> {
    let mut held = Vec::new();
    for (name, network) in [(0..8, 1), (8..12, 2), (12..14, 3), (14..15, 4), (15..16, 5)]
        .into_iter()
        .flat_map(|(names, network)| names.map(move |name| (name, network)))
    {
        let account = account(network);
        let file = directory.hold(files, &account, name).unwrap();
        held.push((account, file));
    }
    assert_eq!(files.open(), 16);
    held
}

#[test]
fn a_further_client_gets_the_place_of_a_file_of_those_that_hold_more() {
    let directory = Directory::new();
    let files = OpenFiles::new(16);
    let mut held = used_up(&directory, &files);
    let newcomer = account(9);
    // Six clients: one part in seven for each.
    let _two: Vec<_> = [16, 17]
        .map(|name| directory.hold(&files, &newcomer, name).unwrap())
        .into();
    assert!(directory.hold(&files, &newcomer, 18).is_err());
    assert!(directory.hold(&files, &account(1), 18).is_err());
    let evicted: Vec<_> = held
        .iter()
        .map(|(account, _)| is_evicted(account))
        .collect();
    assert_eq!(evicted.iter().filter(|evicted| **evicted).count(), 2);
    assert!(evicted[0] && evicted[1], "those that are open for longest");
    assert_eq!(files.open(), 18, "until they are closed");
    held.drain(..2);
    assert_eq!(files.open(), 16);
    // The same file is a new one.
    held.clear();
    let _again = directory.hold(&files, &account(1), 0).unwrap();
    assert_eq!(files.open(), 3);
}

#[cfg(unix)]
#[test]
fn a_file_that_a_client_within_its_share_holds_as_well_stays_open() {
    let directory = Directory::new();
    let files = OpenFiles::new(16);
    let held = used_up(&directory, &files);
    let modest = account(7);
    let _shared = directory.hold(&files, &modest, 0).unwrap();
    let _new = directory.hold(&files, &account(9), 16).unwrap();
    assert!(!is_evicted(&held[0].0) && !is_evicted(&modest));
    assert!(is_evicted(&held[1].0));
}

#[test]
fn files_that_are_being_closed_are_limited() {
    let directory = Directory::new();
    let files = OpenFiles::new(16);
    let _held = used_up(&directory, &files);
    files.state().closing = limits::CLOSING_FILES;
    assert!(directory.hold(&files, &account(9), 16).is_err());
}

#[test]
fn a_lack_of_files_is_exhaustion() {
    assert!(is_exhaustion(&io::Error::other(TooManyFiles)));
    assert!(is_exhaustion(&io::Error::other(UsedUp)));
    assert!(!is_exhaustion(&io::ErrorKind::NotFound.into()));
    #[cfg(unix)]
    assert!(is_exhaustion(&io::Error::from_raw_os_error(24)));
}

#[cfg(unix)]
#[test]
fn a_file_is_charged_to_the_network_of_an_account_whose_address_is_proven() {
    let directory = Directory::new();
    let files = OpenFiles::new(10);
    let own = account(1);
    let unproven = own.of_unproven();
    let other = account(2).of_unproven();
    let first = directory.hold(&files, &unproven, 0).unwrap();
    let again = directory.hold(&files, &unproven, 0).unwrap();
    let shared = directory.hold(&files, &other, 0).unwrap();
    files.charge_to_client_of(&own);
    let held_by = |account: &Account| files.held_by(account.client());
    assert_eq!((held_by(&own), held_by(&unproven)), (1, 1));
    drop((first, shared));
    assert_eq!((held_by(&own), held_by(&unproven)), (1, 0));
    let proven = directory.hold(&files, &own, 0).unwrap();
    assert_eq!((held_by(&own), files.open()), (1, 1));
    drop((again, proven));
    assert_eq!((held_by(&own), files.open()), (0, 0));
    assert!(files.state().by_account.is_empty());
}

/// An event of the files of several networks.
#[derive(Clone, Copy, Debug)]
enum Act {
    Hold { network: u8, name: u32 },
    ReleasedFile(usize),
    Prove(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0..6_u8, 0..20_u32).prop_map(|(network, name)| Act::Hold { network, name }),
        2 => (0..50_usize).prop_map(Act::ReleasedFile),
        1 => (0..50_usize).prop_map(Act::Prove),
    ];
    proptest::collection::vec(act, 0..120)
}

/// The files that could be closed for `client`, found by a scan of all.
fn spare(files: &OpenFiles, client: Prefix) -> Vec<u64> {
    let state = files.state();
    let is_spare = |entry: &Entry| {
        let mut holders = entry.clients.keys();
        !entry.is_evicted && holders.all(|&holder| state.shares.is_greedy(holder, client))
    };
    let spare = state.files.iter().filter(|(_, entry)| is_spare(entry));
    spare.map(|(&number, _)| number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_is_evicted_where_a_scan_of_all_finds_one(acts in acts(), limit in 4..16_u64) {
        let directory = Directory::new();
        let files = OpenFiles::new(limit);
        let mut held: Vec<(Account, HeldFile)> = Vec::new();
        for act in acts {
            match act {
                Act::Hold { network, name } => {
                    let owner = account(network);
                    let client = owner.client();
                    let spare = spare(&files, client);
                    let mut state = files.state();
                    let lacks = state.shares.lacking(client) > 0
                        && state.shares.available_to_waiting(client) == 0;
                    let evicted = state.make_room(client, None);
                    let is_closed = |number: &&u64| state.files[number].is_evicted;
                    let closed = spare.iter().find(is_closed);
                    prop_assert_eq!(closed.is_some(), lacks && !spare.is_empty());
                    prop_assert_eq!(evicted.is_empty(), closed.is_none());
                    drop(state);
                    let first = if name % 3 == 0 { owner.of_unproven() } else { owner.clone() };
                    if let Ok(file) = directory.hold(&files, &first, name) {
                        held.push((owner, file));
                    }
                }
                Act::ReleasedFile(number) if !held.is_empty() => {
                    held.swap_remove(number % held.len());
                }
                Act::Prove(number) if !held.is_empty() => {
                    files.charge_to_client_of(&held[number % held.len()].0);
                }
                Act::ReleasedFile(_) | Act::Prove(_) => {}
            }
        }
        drop(held);
        let state = files.state();
        prop_assert!(state.guards.is_empty() && state.by_account.is_empty());
        prop_assert!(state.files.is_empty() && state.shared.is_empty());
        prop_assert_eq!((state.shares.used(), state.closing), (0, 0));
    }
}
