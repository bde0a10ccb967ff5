use super::*;

const RTT: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn a_new_limit_is_due_after_half_a_window() {
    let mut window = ReceiveWindow::new(1000, 1000);
    assert!(!window.consume(499));
    assert!(window.consume(1));
    assert_eq!(window.advertise(), 1500);
    assert!(!window.consume(499));
}

#[test]
fn a_fast_reader_gets_a_larger_window_up_to_the_ceiling() {
    let mut window = ReceiveWindow::new(1000, 3000);
    window.start(|| at(0));
    window.tune(at(199), RTT);
    assert_eq!(window.size(), 2000);
    window.tune(at(399), RTT);
    assert_eq!(window.size(), 2000);
    window.tune(at(400), RTT);
    assert_eq!(window.size(), 3000);
}

#[test]
fn raising_a_limit_reports_whether_it_had_blocked() {
    let mut credit = SendCredit::default();
    assert!(credit.raise(10));
    assert!(!credit.raise(20));
    credit.sent = 20;
    assert!(!credit.raise(20));
    assert!(credit.raise(21));
}

#[test]
fn writers_are_not_woken_for_less_than_an_eighth_of_the_memory() {
    let mut buffer = WriteBuffer::new(800);
    buffer.update(0, 700);
    assert!(!buffer.has_worthwhile_room());
    buffer.update(700, 699);
    assert!(buffer.has_worthwhile_room());
}
