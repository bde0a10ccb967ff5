//! Data that a receiver holds out of order because earlier data is still in flight on a slower path.

use std::sync::Mutex;

use super::*;
use crate::observe::events::ReassemblyUpdated;

/// Records the number of bytes held out of order.
struct Recorder(Arc<Mutex<Vec<u64>>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &observe::Event<'_>) {
        if let observe::Event::ReassemblyUpdated(ReassemblyUpdated { out_of_order_bytes }) = event {
            self.0.lock().unwrap().push(*out_of_order_bytes);
        }
    }
}

#[test]
fn out_of_order_bytes_are_reported_and_stay_within_the_window() {
    const WINDOW: u64 = 60_000;
    for scheduler in SCHEDULERS.defaults() {
        let recorded = Arc::<Mutex<Vec<u64>>>::default();
        let sink = Arc::clone(&recorded);
        let mut pair = both(TransportConfig {
            receive_window: Some(WINDOW),
            stream_receive_window: Some(WINDOW / 2),
            max_receive_window: WINDOW,
            max_stream_receive_window: WINDOW / 2,
            ..scheduled(scheduler.value)
        });
        pair.client_config.observer = Some(Arc::new(move |_: &ConnectionInfo| {
            Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
        }));
        let mut several = Several::narrow_and_slow(pair);
        let ends = several.ends;
        let data = pattern(300_000);
        let mut transfers = [(); 3].map(|()| Some(Transfer::down(&mut several.pair, ends, &data)));
        let mut of_streams = 0;
        let done = several.pair.drive_until(TIMEOUT, |pair| {
            for transfer in &mut transfers {
                let client = pair.client(ends.client);
                if let Some(transfer) = transfer {
                    of_streams = of_streams.max(client.out_of_order_bytes(transfer.id));
                }
                if transfer.as_mut().is_some_and(|some| some.advance(pair)) {
                    *transfer = None;
                }
            }
            transfers.iter().all(Option::is_none)
        });
        assert!(done, "{}", scheduler.name);
        let held = several.client().stats().streams;
        let recorded = recorded.lock().unwrap();
        assert_eq!(held.out_of_order_bytes, 0);
        assert_eq!(recorded.last(), Some(&0));
        assert_eq!(recorded.iter().max(), Some(&held.out_of_order_bytes_max));
        assert!(
            (1..=WINDOW).contains(&held.out_of_order_bytes_max),
            "{}",
            scheduler.name
        );
        assert!((1..=WINDOW / 2).contains(&of_streams), "{}", scheduler.name);
    }
}
