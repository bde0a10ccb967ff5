use super::*;
use conformance::conformance;

#[test]
fn every_scheduler_conforms() {
    SCHEDULERS.check_each(|make| conformance(|| make()));
}

#[test]
fn wrr_conforms_with_every_switch() {
    for config in [WrrConfig::WRR, WrrConfig::SCATTERED] {
        for first_turn in [FirstTurn::Wait, FirstTurn::Immediate] {
            for strict_parent in [false, true] {
                let config = WrrConfig {
                    first_turn,
                    strict_parent,
                    ..config
                };
                conformance(|| Box::new(Wrr::new(config)));
            }
        }
    }
}

#[test]
fn fifo_serves_by_arrival() {
    let mut fifo = Fifo::default();
    for id in [8, 0, 4] {
        fifo.activate(StreamId::from(id), Priority::default());
    }
    let mut order = Vec::new();
    while let Some(id) = fifo.pick() {
        fifo.on_sent(id, 1200);
        assert_eq!(fifo.pick(), Some(id), "until it is done");
        order.push(u64::from(id));
        fifo.deactivate(id);
    }
    assert_eq!(order, [8, 0, 4]);
}
