use std::pin::pin;

use futures_util::FutureExt;

use super::*;
use crate::server::account::tests::{account, is_evicted};

const WAIT: Duration = Duration::from_secs(10);

/// Takes all available units in one network, in parts with an account each.
fn take_all(budget: &Budget, network: u8) -> Vec<Grant> {
    let take = || budget.try_take(&account(network), 10);
    std::iter::from_fn(take).collect()
}

async fn take(budget: &Budget, account: &Account, wanted: usize) -> Result<Grant, UsedUp> {
    let runtime = RuntimeHandle::new(None).unwrap();
    let taken = budget.clone().take(account.clone(), wanted, runtime, WAIT);
    taken.await
}

#[test]
fn bytes_count_until_the_last_slice_is_dropped() {
    let budget = Budget::new(1000);
    let grant = budget.try_take(&account(1), 100).unwrap();
    let chunk = grant.hold(vec![0; 40]);
    assert_eq!(budget.used(), 40);
    let slice = chunk.slice(3..4);
    drop(chunk);
    assert_eq!(budget.used(), 40);
    drop(slice);
    assert_eq!(budget.used(), 0);
    assert!(budget.state().accounts.is_empty());
}

#[test]
fn one_client_leaves_memory_for_others() {
    let budget = Budget::new(1000);
    let _held = take_all(&budget, 1);
    assert_eq!(budget.used(), 500);
    let other = budget.try_take(&account(2), 100).unwrap();
    assert_eq!(other.bytes(), 100);
}

#[test]
fn a_part_grows_as_far_as_its_client_may_take_more() {
    let budget = Budget::new(1000);
    let account = account(1);
    let mut grant = budget.try_take(&account, 10).unwrap();
    grant.grow(&account, 30);
    assert_eq!((grant.bytes(), budget.used()), (30, 30));
    grant.grow(&account, 5000);
    assert!(grant.bytes() <= 515, "{}", grant.bytes());
    drop(grant);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn all_that_wait_continue_as_bytes_are_dropped() {
    let budget = Budget::new(100);
    let held = budget.try_take(&account(1), 50).unwrap();
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let budget = budget.clone();
            tokio::spawn(async move {
                // One in three is abandoned while it waits.
                let account = account(1);
                let mut taking = pin!(take(&budget, &account, 10));
                if number % 3 == 0 {
                    assert!((&mut taking).now_or_never().is_none());
                    return;
                }
                drop(taking.await);
            })
        })
        .collect();
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    drop(held);
    for task in waiting {
        task.await.unwrap();
    }
    assert_eq!(budget.used(), 0);
    assert!(budget.state().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_what_it_is_entitled_to_from_those_that_hold_the_most() {
    let budget = Budget::new(1200);
    let largest = account(0);
    let mut kept = vec![budget.try_take(&largest, 300).unwrap()];
    for network in 0..20 {
        kept.extend(take_all(&budget, network));
    }
    assert_eq!(budget.used(), 1200);
    let newcomer = account(99);
    let entitled = {
        let state = budget.state();
        state.shares.entitlement(newcomer.client())
    };
    assert!(entitled > 50, "{entitled}");
    let mut taking = pin!(take(&budget, &newcomer, 50));
    let patience = limits::BUFFER_RECLAIM_DELAY;
    assert!(
        tokio::time::timeout(patience / 2, &mut taking)
            .await
            .is_err()
    );
    assert!(!is_evicted(&largest), "bytes may come back by themselves");
    assert!(tokio::time::timeout(patience, &mut taking).await.is_err());
    assert!(is_evicted(&largest));
    assert!(!kept[1..].iter().any(|grant| is_evicted(&grant.account)));
    kept.remove(0);
    assert_eq!(taking.await.unwrap().bytes(), 50);
    drop(kept);
    assert_eq!(budget.used(), 0);
    assert!(budget.state().accounts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_holds_enough_waits_no_longer_than_the_limit_and_evicts_nobody() {
    let budget = Budget::new(1000);
    let mut kept = take_all(&budget, 1);
    kept.extend(take_all(&budget, 2));
    let start = tokio::time::Instant::now();
    let result = take(&budget, &account(1), 10).await;
    assert_eq!(result.map(|grant| grant.bytes()), Err(UsedUp));
    assert_eq!(start.elapsed().as_secs(), WAIT.as_secs());
    assert!(!kept.iter().any(|grant| is_evicted(&grant.account)));
    assert!(budget.state().waiting.is_empty());
}

/// Counts its wake-ups.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn bytes_that_come_back_wake_few_of_the_clients_that_wait() {
    let budget = Budget::new(10_000);
    let mut kept = Vec::new();
    for network in 200..240 {
        kept.extend(take_all(&budget, network));
    }
    assert_eq!(budget.used(), 10_000);
    let woken = Arc::new(Counting::default());
    let waker = Waker::from(Arc::clone(&woken));
    let accounts: Vec<_> = (0..200).map(account).collect();
    let mut waiting: Vec<_> = accounts
        .iter()
        .map(|account| Box::pin(take(&budget, account, 10)))
        .collect();
    for taking in &mut waiting {
        let polled = taking.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    drop(kept.pop());
    let count = woken.0.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1..10).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn clients_that_wait_wake_each_other_as_they_take_what_came_back() {
    let budget = Budget::new(10_000);
    let largest = account(250);
    let largest = budget.try_take(&largest, 5000).unwrap();
    let mut kept = Vec::new();
    for network in 200..240 {
        kept.extend(take_all(&budget, network));
    }
    let start = tokio::time::Instant::now();
    let waiting: Vec<_> = (0..100)
        .map(|network| {
            let budget = budget.clone();
            tokio::spawn(async move { take(&budget, &account(network), 10).await.unwrap() })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(largest);
    for task in waiting {
        kept.push(task.await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[test]
fn an_account_that_has_to_end_is_charged_to_nobody_although_its_address_is_proven_then() {
    let budget = Budget::new(1000);
    let own = account(1);
    let unproven = own.of_unproven();
    let grant = budget.try_take(&unproven, 100).unwrap();
    let mut state = budget.state();
    let largest = state.accounts.evict_largest(unproven.client()).unwrap();
    state.shares.discharge(unproven.client(), largest.bytes);
    drop(state);
    budget.charge_to_client_of(&own);
    assert_eq!(budget.held_by(own.client()), 0);
    assert_eq!(budget.used(), 100);
    drop(grant);
    assert_eq!(budget.used(), 0);
    assert!(budget.state().accounts.is_empty());
}

/// The number of holders that have to end.
fn evicted(kept: &[Grant]) -> usize {
    let evicted = kept.iter().filter(|grant| is_evicted(&grant.account));
    evicted.count()
}

#[tokio::test(start_paused = true)]
async fn nobody_further_has_to_end_while_others_end_slowly() {
    let budget = Budget::new(1200);
    let mut kept = vec![budget.try_take(&account(0), 300).unwrap()];
    for network in 0..20 {
        kept.extend(take_all(&budget, network));
    }
    let newcomer = account(99);
    let mut taking = pin!(take(&budget, &newcomer, 50));
    let waited = tokio::time::timeout(WAIT / 2, &mut taking).await;
    assert!(waited.is_err());
    assert!(is_evicted(&kept[0].account));
    assert_eq!(evicted(&kept), 1);
    kept.remove(0);
    assert_eq!(taking.await.unwrap().bytes(), 50);
}

#[tokio::test(start_paused = true)]
async fn each_network_that_waits_is_given_what_it_is_entitled_to_and_no_more_is_taken_back() {
    let budget = Budget::new(10_000);
    let mut kept = Vec::new();
    for network in 200..240 {
        kept.extend(take_all(&budget, network));
    }
    assert_eq!(budget.used(), 10_000);
    let accounts: Vec<_> = (0..3)
        .flat_map(|network| [(); 40].map(|()| account(network)))
        .collect();
    let mut waiting: Vec<_> = accounts
        .iter()
        .map(|account| Box::pin(take(&budget, account, 100)))
        .collect();
    let wait = futures_util::future::join_all(
        waiting
            .iter_mut()
            .map(|taking| tokio::time::timeout(WAIT / 2, taking)),
    );
    assert!(wait.await.iter().all(Result::is_err));
    // Whatever their responses want.
    let entitled = {
        let state = budget.state();
        state.shares.entitlement(accounts[0].client())
    };
    let ended = kept.iter().filter(|grant| is_evicted(&grant.account));
    let bytes: u64 = ended.map(|grant| grant.bytes).sum();
    assert!(
        (3 * entitled..3 * entitled + 30).contains(&bytes),
        "{bytes} of {entitled}"
    );
    kept.retain(|grant| !is_evicted(&grant.account));
    drop(waiting);
    assert!(budget.state().claims.is_empty());

    drop(kept);
    assert_eq!(budget.used(), 0);
}
