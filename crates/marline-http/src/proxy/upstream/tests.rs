//! The health of applications.

use super::*;

fn second(number: u64) -> Instant {
    Instant::now() + Duration::from_secs(number)
}

#[tokio::test(start_paused = true)]
async fn an_application_works_again_when_its_failure_is_over_or_a_response_comes() {
    let mut health = Health::default();
    assert!(health.is_healthy(second(0)));
    assert_eq!(health.works_since(second(0)), None);
    health.on_failure(second(10));
    assert!(!health.is_healthy(second(9)));
    assert_eq!(health.works_since(second(9)), None);
    assert!(health.is_healthy(second(10)));
    assert_eq!(health.works_since(second(15)), Some(second(10)));
    health.on_response(second(15));
    assert_eq!(health.works_since(second(20)), Some(second(10)));
    health.on_failure(second(40));
    health.on_response(second(30));
    assert!(health.is_healthy(second(30)));
    assert_eq!(health.works_since(second(30)), Some(second(30)));
}

#[tokio::test(start_paused = true)]
async fn an_application_works_since_its_first_check_that_succeeds_again() {
    let mut health = Health::default();
    health.on_check(true, second(1));
    assert_eq!(health.works_since(second(1)), None);
    health.on_check(false, second(2));
    assert!(!health.is_healthy(second(2)));
    for number in 3..5 {
        health.on_check(true, second(number));
    }
    assert!(health.is_healthy(second(5)));
    assert_eq!(health.works_since(second(5)), Some(second(3)));
}
