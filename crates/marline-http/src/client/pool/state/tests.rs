use super::*;
use crate::pipes::SignalTrace;
use crate::pipes::cba::{BurstMode, Creation};

const NOW: Instant = Instant::EPOCH;

fn state(policy: PipePolicy, sinr_db: f64) -> State {
    let mut config = PipesConfig::new(policy);
    config.signal = Arc::new(SignalTrace::constant(sinr_db));
    State::new(&config, policy.max_pipes())
}

fn place(state: &mut State) -> ObjectId {
    let connections = vec![None; state.pipes.len()];
    state.place(NOW, ObjectKind::Other, &connections).object
}

#[test]
fn round_robin_with_more_pipes_than_the_limit_uses_as_many_as_the_limit() {
    let mut state = state(PipePolicy::RoundRobin(RrConfig { pipes: 100 }), 0.0);
    for _ in 0..200 {
        place(&mut state);
    }
    assert_eq!(state.created.len(), crate::limits::MAX_PIPES);
}

#[test]
fn if_all_pipes_are_full_an_object_goes_where_the_most_room_is() {
    let policy = PipePolicy::BurstAware(CbaConfig {
        // Less than an object.
        buffer: 1,
        creation: Creation::OnDemand,
        ..CbaConfig::default()
    });
    let mut state = state(policy, -3.0);
    let objects: Vec<_> = (0..5).map(|_| place(&mut state)).collect();
    assert_eq!(state.created.len(), 5);
    for object in &objects {
        // Less than was assigned.
        state.on_received(*object, 10, NOW);
    }
    state.on_size(objects[3], 100);
    assert_eq!(place(&mut state).pipe, objects[3].pipe);
}

#[test]
fn a_pipe_that_opens_again_begins_with_an_empty_buffer() {
    let policy = PipePolicy::BurstAware(CbaConfig {
        buffer: 1000,
        mode: BurstMode::Received,
        ..CbaConfig::default()
    });
    let mut state = state(policy, 25.0);
    let object = place(&mut state);
    state.on_received(object, 700, NOW);
    state.on_done(object, NOW);
    let available = |state: &mut State| {
        let config = CbaConfig {
            buffer: 1000,
            mode: BurstMode::Received,
            ..CbaConfig::default()
        };
        state.pipes[object.pipe].load(&config, NOW, None).available
    };
    assert_eq!(available(&mut state), 300);
    let closing = state.close_idle(object.pipe, NOW, Duration::ZERO);
    assert!(matches!(closing, Closing::Now(_)));
    assert_eq!(available(&mut state), 1000);
    assert_eq!(state.totals()[object.pipe].bytes, 700);
}

#[test]
fn requests_without_a_fetch_count_as_a_session_when_all_pipes_are_closed() {
    let mut state = state(PipePolicy::RoundRobin(RrConfig { pipes: 2 }), 0.0);
    for requests in [3, 5] {
        let objects: Vec<_> = (0..requests).map(|_| place(&mut state)).collect();
        for object in objects {
            state.on_done(object, NOW);
            state.end_session_if_closed();
            assert_eq!(state.history.current, requests, "a pipe is open");
        }
        for pipe in 0..2 {
            state.close_idle(pipe, NOW, Duration::ZERO);
        }
        for _ in 0..2 {
            state.end_session_if_closed();
            assert_eq!(state.history.current, 0);
        }
    }
    assert_eq!(state.history.mean, Some(4.0));
    assert_eq!(state.history.sessions, 2);
}
