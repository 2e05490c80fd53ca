//! The queues between workers, one operation after the other. What happens at once is in `interleavings`.

use sledge_schedule::Exchange;

#[test]
fn a_worker_takes_its_share_of_what_was_injected_and_leaves_the_others_theirs() {
    let (exchange, _deques) = Exchange::<u32>::new(4);
    assert!(exchange.take_injected().is_empty());
    (0..10).for_each(|work| exchange.inject(work));
    assert_eq!(exchange.take_injected(), [0, 1, 2], "a quarter of ten, rounded up");
    assert_eq!(exchange.take_injected(), [3, 4], "a quarter of seven");
    assert_eq!(exchange.take_injected(), [5, 6]);
    assert_eq!((exchange.take_injected(), exchange.take_injected(), exchange.take_injected()), (vec![7], vec![8], vec![9]));
    assert!(!exchange.has_injected());
}

#[test]
fn a_worker_does_not_wait_while_another_has_a_backlog() {
    let (exchange, _deques) = Exchange::<u32>::new(2);
    assert!(exchange.try_idle(0));
    exchange.busy(0);
    exchange.set_backlog(1, true);
    assert!(!exchange.try_idle(0));
    assert!(exchange.try_idle(1), "its own backlog is no reason");
}
