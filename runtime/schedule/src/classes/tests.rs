//! Predictions, shares and limits, each for itself; together they are played in `core/batch.rs`.

use super::*;

const QUANTUM: Duration = Duration::from_micros(500);
const HERE: Spot = Spot { site: Site(7), times: 0 };
const THERE: Spot = Spot { site: Site(8), times: 0 };

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Observes so many microtasks there.
fn observe(bursts: &mut Bursts, spot: Spot, took: Duration, times: usize) {
    (0..times).for_each(|_| bursts.observe(spot, nanoseconds(took)));
}

#[test]
fn classes_are_a_factor_of_eight_apart_and_a_bound_belongs_to_the_shorter() {
    let classes = [1, 124, 125, 126, 1_000, 1_001, 8_000, 8_001, 10_000_000].map(|time| class_of(micros(time)));
    assert_eq!(classes, [0, 0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_prediction_is_of_the_place_where_a_microtask_begins() {
    let mut bursts = Bursts::default();
    assert_eq!(bursts.class_at(HERE, None), 0, "nothing is known");
    observe(&mut bursts, HERE, micros(10_000), 1);
    assert_eq!((bursts.class_at(HERE, None), bursts.class_at(THERE, None)), (3, 0));
}

#[test]
fn the_last_time_of_a_loop_is_told_from_the_others() {
    let mut bursts = Bursts::default();
    let spots: Vec<Spot> = std::iter::successors(Some(HERE), |spot| Some(spot.then(HERE.site))).take(8).collect();
    for _ in 0..3 {
        spots[..7].iter().for_each(|spot| observe(&mut bursts, *spot, micros(60), 1));
        observe(&mut bursts, spots[7], micros(10_000), 1);
    }
    assert_eq!(spots.iter().map(|spot| bursts.class_at(*spot, None)).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 0, 3]);
    // What comes from elsewhere begins anew, and long loops are told apart no further.
    assert_eq!(spots[7].then(THERE.site), THERE);
    let far = (0..100).fold(HERE, |spot, _| spot.then(HERE.site));
    assert_eq!(far, far.then(HERE.site));
}

#[test]
fn one_that_takes_long_among_seven_that_do_not_is_no_reason_to_be_slow() {
    let mut bursts = Bursts::default();
    for _ in 0..20 {
        observe(&mut bursts, HERE, micros(60), 7);
        observe(&mut bursts, HERE, micros(10_000), 1);
        assert_eq!(bursts.class_at(HERE, None), 0);
    }
}

#[test]
fn a_class_changes_when_the_average_is_half_an_octave_beyond_its_end() {
    let mut bursts = Bursts::default();
    // A quarter of an octave beyond, both ways.
    observe(&mut bursts, HERE, micros(100), 20);
    observe(&mut bursts, HERE, micros(148), 50);
    assert_eq!(bursts.class_at(HERE, None), 0);
    observe(&mut bursts, HERE, micros(200), 50);
    assert_eq!(bursts.class_at(HERE, None), 1);
    observe(&mut bursts, HERE, micros(105), 50);
    assert_eq!(bursts.class_at(HERE, None), 1);
    observe(&mut bursts, HERE, micros(80), 50);
    assert_eq!(bursts.class_at(HERE, None), 0);
}

#[test]
fn an_annotation_is_believed_until_measurements_say_otherwise() {
    let mut bursts = Bursts::default();
    assert_eq!(bursts.class_at(HERE, Some(micros(10_000))), 3);
    observe(&mut bursts, HERE, micros(60), 3);
    assert_ne!(bursts.class_at(HERE, Some(micros(10_000))), 0, "not at once");
    observe(&mut bursts, HERE, micros(60), 20);
    assert_eq!(bursts.class_at(HERE, Some(micros(10_000))), 0, "the annotation is not asked again");
}

/// How many of the next quanta each class has, while all of them always want to run.
fn quanta(shares: Shares, waiting: [usize; CLASSES], quanta: usize) -> [usize; CLASSES] {
    let mut sharing = Sharing::default();
    let means = [60_000, 500_000, 4_000_000, 16_000_000];
    for class in 0..CLASSES as u8 {
        (0..waiting[usize::from(class)]).for_each(|_| sharing.added(class));
        sharing.wants(class);
    }
    let mut had = [0; CLASSES];
    for _ in 0..quanta {
        let (class, ()) = sharing.next(|_| Some(())).expect("they do not end");
        had[usize::from(class)] += 1;
        sharing.runs(class);
        sharing.used(class, QUANTUM, shares, &means, QUANTUM);
        sharing.wants(class);
    }
    had
}

#[test]
fn static_shares_are_what_they_are_whatever_waits() {
    let shares = Shares::Static([6, 10, 8, 1]);
    for waiting in [[1; CLASSES], [1, 500, 1, 3]] {
        let had = quanta(shares, waiting, 2_500);
        let off = had.iter().zip([600_usize, 1_000, 800, 100]).map(|(had, wanted)| had.abs_diff(wanted)).max();
        assert!(off <= Some(3), "{had:?}");
    }
    assert_eq!(quanta(shares, [0, 1, 0, 0], 100), [0, 100, 0, 0], "what one does not use, others have");
}

#[test]
fn dynamic_shares_follow_what_waits_and_leave_no_class_without_any() {
    // Little of the shortest waits, and much of the longest: 8 parts and 18.
    let [short, _, _, long] = quanta(Shares::Dynamic, [1, 0, 0, 20], 2_600);
    assert!((760..=840).contains(&short) && (1_760..=1_840).contains(&long), "{short} and {long}");
    // So much waits of both that their backlogs are alike: 24 parts and 18.
    let [short, _, _, long] = quanta(Shares::Dynamic, [1_000, 0, 0, 20], 4_200);
    assert!((2_340..=2_460).contains(&short) && (1_740..=1_860).contains(&long), "{short} and {long}");
    let had = quanta(Shares::Dynamic, [1_000, 1, 1, 1], 4_800);
    assert!(had.iter().all(|had| *had >= 200), "{had:?}");
}

#[test]
fn a_class_in_which_nothing_may_run_is_passed_over_and_comes_again() {
    let mut sharing = Sharing::default();
    [0, 2].into_iter().for_each(|class| {
        sharing.added(class);
        sharing.wants(class);
    });
    assert_eq!(sharing.next(|class| (class == 2).then_some(())), Some((2, ())));
    sharing.removed(2);
    sharing.wants(2);
    assert_eq!(sharing.next(|_| None::<()>), None);
    assert_eq!(sharing.next(|_| Some(())), Some((0, ())), "its turn has waited");
}

#[test]
fn requests_begin_while_what_is_on_its_way_keeps_the_core_busy_until_they_get_there_and_no_longer() {
    let (now, tenant) = (Instant::now(), TenantId(3));
    let mut ahead = Ahead::new(QUANTUM);
    let mut learned = Learned::default();
    ahead.begins(tenant, nanoseconds(micros(100_000)), now);
    assert!(!ahead.is_enough(tenant, &learned), "nothing is known of it");
    (0..10).for_each(|_| learned.learn(nanoseconds(micros(10_000)), Some(nanoseconds(micros(40_000)))));
    assert!(
        ahead.is_enough(tenant, &learned) && !ahead.is_enough(TenantId(0), &learned),
        "of another tenant nothing is on its way"
    );
    ahead.remove(tenant, nanoseconds(micros(59_000)));
    assert!(ahead.is_enough(tenant, &learned), "40 ms and two quanta");
    ahead.remove(tenant, 1);
    assert!(!ahead.is_enough(tenant, &learned));
    assert_eq!(ahead.begins_anyway_at(), Some(now + micros(100_000)));
    // What brings next to nothing is never held.
    let mut short = Learned::default();
    short.learn(nanoseconds(QUANTUM) - 1, Some(0));
    ahead.add(tenant, nanoseconds(micros(1_000_000)));
    assert!(ahead.is_enough(tenant, &learned) && !ahead.is_enough(tenant, &short));
}
