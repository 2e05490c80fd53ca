//! Equal requests at the same time: which wait, for whom, and what they get.

use super::*;

fn memo(pure: bool) -> Arc<Memo> {
    let of = Of { function: "f".to_owned(), version: 1, health: None, budget: None };
    Memo::new(of, Settings { answers: true, pure, bytes_max: 1 << 20, whole_head: false })
}

/// A request with that body and that header.
fn look(memo: &Arc<Memo>, text: &'static str, header: &'static str, events: &mut Vec<Event>) -> Look {
    let mut headers = HeaderMap::new();
    headers.append("x-a", HeaderValue::from_static(header));
    let head = RequestHead { method: Method::GET, target: Uri::from_static("/"), headers, is_secure: false };
    memo.look(&body(&[text]), Some(&head), nothing(), true, |event| events.push(event))
}

fn runs(look: Look) -> Box<Asked> {
    match look {
        Look::Run(asked) => asked,
        other => panic!("{other:?}"),
    }
}

fn waits(look: Look) -> Follower {
    match look {
        Look::Wait(follower) => follower,
        other => panic!("{other:?}"),
    }
}

fn is_over(follower: &Follower) -> bool {
    follower.poll(&std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
}

/// A run ends that did this, and answers so.
fn ends(memo: &Memo, mut asked: Box<Asked>, trace: &EffectTrace, text: &'static str, is_cancelled: bool) {
    let content = Content::Whole(Bytes::from_static(text.as_bytes()));
    let ended = Ended { content: Some(&content).filter(|_| !is_cancelled), is_cancelled, ..super::well(&content) };
    let entry = memo.learn(&mut asked, trace, &ended, |_| ());
    asked.land(entry.as_ref(), nothing());
}

fn well(memo: &Memo, asked: Box<Asked>, text: &'static str) {
    ends(memo, asked, &EffectTrace::default(), text, false);
}

/// The text of the run that has answered it.
fn collapsed(follower: Follower, events: &mut Vec<Event>) -> String {
    match follower.end(nothing(), |event| events.push(event)) {
        Look::Collapsed(entry) => {
            let head = entry.head(How::Collapsed);
            assert_eq!(head.headers.get(&CACHE_STATUS).unwrap(), "sledge; fwd=miss; collapsed");
            String::from_utf8_lossy(&entry.body).into_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_wait_for_an_equal_one_where_runs_could_be_given_again_so_far() {
    let (memo, mut events) = (memo(false), Vec::new());
    // It is not known yet.
    let first = runs(look(&memo, "a", "", &mut events));
    let second = runs(look(&memo, "a", "", &mut events));
    well(&memo, first, "one");
    drop(second);
    events.clear();
    let leader = runs(look(&memo, "q", "", &mut events));
    let (a, b) = (waits(look(&memo, "q", "", &mut events)), waits(look(&memo, "q", "", &mut events)));
    let other = runs(look(&memo, "r", "", &mut events));
    assert!(!is_over(&a) && !is_over(&b));
    well(&memo, other, "other");
    assert!(!is_over(&a), "it waits for another");
    well(&memo, leader, "answer");
    assert!(is_over(&a) && is_over(&b));
    assert_eq!((collapsed(a, &mut events), collapsed(b, &mut events)), ("answer".to_owned(), "answer".to_owned()));
    assert_eq!(events, [Event::Miss, Event::Miss, Event::Collapsed, Event::Collapsed]);
    assert!(matches!(look(&memo, "q", "", &mut events), Look::Hit(_)), "what was waited for is kept at once");
    assert_eq!(memo.explained().answered, 3);
    // What is not to wait does not.
    let _leader = runs(look(&memo, "s", "", &mut events));
    runs(memo.look(&body(&["s"]), None, nothing(), false, |_| ()));
    assert!(lock(&memo.state).flights.arrive([0; 32], true) != Arrival::Runs);
}

#[test]
fn what_cannot_be_given_again_is_waited_for_once_and_then_not_until_eight_runs_were_good() {
    let (memo, mut events) = (memo(false), Vec::new());
    let mut random = EffectTrace::default();
    random.effects.insert(Effect::Entropy);
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    let leader = runs(look(&memo, "q", "", &mut events));
    let followers = [(); 3].map(|()| waits(look(&memo, "q", "", &mut events)));
    ends(&memo, leader, &random, "", false);
    for follower in followers {
        assert!(is_over(&follower));
        runs(follower.end(nothing(), |_| ()));
    }
    for text in ["b", "c", "d", "e", "f", "g", "h", "i"] {
        let leader = runs(look(&memo, text, "", &mut events));
        well(&memo, runs(look(&memo, text, "", &mut events)), "");
        drop(leader);
    }
    let _leader = runs(look(&memo, "q", "", &mut events));
    waits(look(&memo, "q", "", &mut events));
}

#[test]
fn those_that_wait_run_as_soon_as_their_leader_has_done_what_cannot_be_given_again() {
    let (memo, mut events) = (memo(false), Vec::new());
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    let mut leader = runs(look(&memo, "q", "", &mut events));
    let follower = waits(look(&memo, "q", "", &mut events));
    let mut trace = EffectTrace::default();
    trace.effects.insert(Effect::KvRead);
    leader.goes_on(&trace);
    assert!(!is_over(&follower));
    trace.effects.insert(Effect::KvWrite);
    leader.goes_on(&trace);
    assert!(is_over(&follower));
    runs(follower.end(nothing(), |_| ()));
    runs(look(&memo, "q", "", &mut events));
    runs(look(&memo, "q", "", &mut events));
    assert!(lock(&memo.state).flights.is_empty(), "no more wait");
}

#[test]
fn where_a_leader_is_lost_the_others_run_and_what_arrives_then_waits_for_one_of_them() {
    let (memo, mut events) = (memo(false), Vec::new());
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    for is_dropped in [true, false] {
        let leader = runs(look(&memo, "q", "", &mut events));
        let [a, b, c] = [(); 3].map(|()| waits(look(&memo, "q", "", &mut events)));
        if is_dropped {
            drop(leader);
        } else {
            ends(&memo, leader, &EffectTrace::default(), "", true);
        }
        assert!(is_over(&a) && is_over(&b) && is_over(&c));
        let (next, _alone) = (runs(a.end(nothing(), |_| ())), runs(b.end(nothing(), |_| ())));
        let follower = waits(look(&memo, "q", "", &mut events));
        runs(c.end(nothing(), |_| ()));
        assert!(!is_over(&follower));
        // It has waited for long enough, or its client has gone.
        let impatient = waits(look(&memo, "q", "", &mut events));
        runs(impatient.end(nothing(), |_| ()));
        drop(waits(look(&memo, "q", "", &mut events)));
        well(&memo, next, "answer");
        assert_eq!(collapsed(follower, &mut events), "answer");
        lock(&memo.state).table.clear();
        assert!(lock(&memo.state).flights.is_empty());
    }
}

#[test]
fn those_that_wait_do_not_get_what_depends_on_a_header_that_they_may_not_share() {
    let (memo, mut events) = (memo(false), Vec::new());
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    let leader = runs(look(&memo, "q", "1", &mut events));
    let (same, other) = (waits(look(&memo, "q", "1", &mut events)), waits(look(&memo, "q", "2", &mut events)));
    let mut reading = EffectTrace::default();
    reading.effects.insert(Effect::Head);
    reading.head.insert(HeadField::Header("x-a".to_owned()));
    ends(&memo, leader, &reading, "1", false);
    assert!(is_over(&same) && is_over(&other));
    runs(same.end(nothing(), |_| ()));
    let run = runs(other.end(nothing(), |_| ()));
    // The next runs show whether that is all that is read.
    let held = runs(look(&memo, "r", "1", &mut events));
    runs(look(&memo, "r", "1", &mut events));
    drop(held);
    ends(&memo, run, &reading, "2", false);
    let _leader = runs(look(&memo, "q", "3", &mut events));
    runs(look(&memo, "q", "4", &mut events));
    waits(look(&memo, "q", "3", &mut events));
}

#[test]
fn answers_of_what_is_said_to_be_pure_are_compared_also_where_requests_waited() {
    let (memo, mut events) = (memo(true), Vec::new());
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    let (mut compared, mut answered) = (0, 0);
    for _ in 0..2 * COMPARED / 4 {
        let leader = runs(look(&memo, "q", "", &mut events));
        let followers = [(); 4].map(|()| waits(look(&memo, "q", "", &mut events)));
        well(&memo, leader, "answer");
        for follower in followers {
            match follower.end(nothing(), |event| events.push(event)) {
                Look::Collapsed(_) => answered += 1,
                Look::Run(asked) => {
                    compared += 1;
                    well(&memo, asked, "answer");
                }
                other => panic!("{other:?}"),
            }
        }
        lock(&memo.state).table.clear();
    }
    assert_eq!((compared, answered), (2, 2 * COMPARED - 2));
    assert_eq!(events.iter().filter(|event| **event == Event::Compared).count(), 2);
    // Where one is found to be wrong, those that wait run, also if their flight has landed, and no more wait.
    let leaders = ["q", "r"].map(|text| runs(look(&memo, text, "", &mut events)));
    let followers = ["q", "r"].map(|text| waits(look(&memo, text, "", &mut events)));
    let [before, after] = leaders;
    well(&memo, before, "answer");
    memo.switch_off();
    well(&memo, after, "answer");
    for follower in followers {
        assert!(is_over(&follower));
        runs(follower.end(nothing(), |_| ()));
    }
    runs(look(&memo, "q", "", &mut events));
    runs(look(&memo, "q", "", &mut events));
    assert!(lock(&memo.state).flights.is_empty());
}

/// The store is changed when the run is over and before those that wait are told.
#[test]
fn those_that_wait_do_not_get_what_a_write_has_made_old() {
    let world = World::new();
    world.put(0, "1");
    let (_, function) = deployed(Program { version: 1, ops: vec![Op::Get(0)], length: 1 }, &json!({ "memo": "auto" }));
    let (memo, request) = (super::memo(&function), request(&mut Rng::with_seed(1)));
    let program = Program { version: 1, ops: vec![Op::Get(0)], length: 1 };
    let ask = || memo.look(&body(request.body), Some(&request.head), world.now(), true, |_| ());
    let run = |mut asked: Box<Asked>| {
        let mut run = Run::default();
        while !program.step(&mut run, &request, &world) {}
        let entry = learnt(memo, &mut asked, &program, &run);
        (asked, entry)
    };
    drop(run(runs(ask())));
    for is_written in [false, true] {
        world.put(0, "2");
        let leader = runs(ask());
        let follower = waits(ask());
        let (asked, entry) = run(leader);
        assert!(entry.is_some());
        if is_written {
            world.put(0, "3");
        }
        asked.land(entry.as_ref(), world.now());
        assert!(is_over(&follower));
        match follower.end(nothing(), |_| ()) {
            Look::Collapsed(entry) => assert!(!is_written, "{entry:?}"),
            Look::Run(asked) => {
                assert!(is_written);
                drop(asked);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What read a store elsewhere is confirmed for each request that has waited, and what has changed the store is not waited for.
#[test]
fn those_that_wait_for_a_run_that_read_a_store_elsewhere_have_it_confirmed_each() {
    let (memo, mut events) = (memo(false), Vec::new());
    let space = crate::kv::redis::Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap().space("t");
    let space = Space::Redis(space);
    let now = Now { space: Some(&space), version: &|_| None };
    let mut reading = EffectTrace::default();
    reading.effects.insert(Effect::KvRead);
    reading.read.push((key(0), 1));
    well(&memo, runs(look(&memo, "a", "", &mut events)), "");
    let content = Content::Whole(Bytes::from_static(b"1"));
    let mut leader = runs(look(&memo, "q", "", &mut events));
    let [a, b, gone] = [(); 3].map(|()| waits(look(&memo, "q", "", &mut events)));
    let entry = memo.learn(&mut leader, &reading, &super::well(&content), |_| ());
    leader.land(entry.as_ref(), now);
    drop(gone);
    for follower in [a, b] {
        assert!(is_over(&follower));
        let Look::Check(check) = follower.end(now, |_| ()) else { panic!("the store decides") };
        assert_eq!(check.commit().expected, [(key(0), 1)]);
    }
    let mut writing = EffectTrace { transaction: Some(Commit::new(Vec::new(), vec![(key(1), Change::Delete)])), ..reading };
    writing.effects.insert(Effect::KvWrite);
    ends(&memo, runs(look(&memo, "w", "", &mut events)), &writing, "1", false);
    let _leader = runs(look(&memo, "v", "", &mut events));
    runs(look(&memo, "v", "", &mut events));
}
