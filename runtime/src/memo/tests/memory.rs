//! Tables count in the server's memory, and give it back before a request is refused.

use sledge_sandbox::Budget;

use super::*;

const MIB: u64 = 1 << 20;

fn memo(budget: &Arc<Budget>) -> Arc<Memo> {
    let of = Of { function: "f".to_owned(), version: 1, health: None, budget: Some(Arc::clone(budget)) };
    Memo::new(of, Settings { answers: true, pure: false, bytes_max: 8 << 20, whole_head: false })
}

/// Two equal requests, whose answer has half a MiB.
fn keep(memo: &Arc<Memo>, number: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..2 {
        let mut sent = Body::default();
        sent.push(number.to_string().into());
        let Look::Run(mut asked) = memo.look(&sent, None, nothing(), false, |_| ()) else { panic!("it is not kept yet") };
        let content = Content::Whole(vec![0; 1 << 19].into());
        assert!(memo.learn(&mut asked, &EffectTrace::default(), &well(&content), |event| events.push(event)).is_none());
    }
    events
}

#[test]
fn tables_count_in_the_servers_memory_and_shrink_before_a_request_is_refused() {
    let budget = Budget::new(8 * MIB);
    let memos = [memo(&budget), memo(&budget)];
    for number in 0..4 {
        memos.iter().for_each(|memo| assert_eq!(keep(memo, number), [Event::Stored]));
    }
    let bytes = || memos.iter().map(|memo| memo.bytes() as u64).sum::<u64>();
    assert!(bytes() > 4 * MIB && budget.bytes_used() == bytes(), "{} {}", bytes(), budget.bytes_used());
    // A request that needs no more than is left takes nothing.
    let request = budget.claim(3 * MIB).unwrap();
    assert_eq!(memos.each_ref().map(|memo| memo.explained().entries), [4, 4]);
    let mut next = budget.claim(2 * MIB).unwrap();
    let entries: usize = memos.iter().map(|memo| memo.explained().entries).sum();
    assert!((1..8).contains(&entries), "as much as it takes: {entries}");
    assert_eq!(budget.bytes_used(), bytes() + 5 * MIB);
    assert!(next.resize(5 * MIB), "all of it");
    assert_eq!((bytes(), budget.bytes_used()), (0, 8 * MIB));
    // For an answer nothing is taken away: what is new goes.
    assert_eq!(keep(&memos[0], 9), [], "not even its key is noted");
    assert_eq!(memos[0].bytes(), 0);
    drop((request, next));
    // What was given back is counted with what is kept next.
    let events: Vec<_> = memos.iter().flat_map(|memo| keep(memo, 9)).collect();
    let evicted = events.iter().filter_map(|event| if let Event::Evicted(count) = event { Some(*count) } else { None });
    assert_eq!(evicted.sum::<u64>(), 8, "{events:?}");
    drop(memos);
    assert_eq!(budget.bytes_used(), 0);
}

#[test]
fn a_table_has_no_more_than_is_left() {
    let budget = Budget::new(3 * MIB / 2);
    let memo = memo(&budget);
    let kept: Vec<_> = (0..6).flat_map(|number| keep(&memo, number)).collect();
    assert!(kept.contains(&Event::Evicted(1)), "{kept:?}");
    assert_eq!((memo.explained().entries, memo.bytes() as u64), (2, budget.bytes_used()));
    memo.clear();
    assert_eq!(budget.bytes_used(), 0);
}
