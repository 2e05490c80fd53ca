//! Both sides of a pipe, by hand.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn pipe(length: Option<u64>, is_bodiless: bool) -> (Writer, Arc<Pipe>, Stream) {
    let mut writer = Writer::new(ReplyBytes::default(), 1 << 20, length, is_bodiless, false);
    let (pipe, stream) = writer.begin().unwrap();
    assert!(writer.begin().is_none());
    (writer, pipe, stream)
}

fn next(stream: &mut Stream) -> Poll<Option<Result<Bytes, Failure>>> {
    stream.poll_next(&Context::from_waker(Waker::noop()))
}

fn piece(stream: &mut Stream) -> Bytes {
    match next(stream) {
        Poll::Ready(Some(Ok(bytes))) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_taken_is_under_way_until_it_was_sent() {
    let (mut writer, pipe, mut stream) = pipe(None, false);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let context = Context::from_waker(&waker);
    assert_eq!(writer.write(&[1; 40_000]), Ok(40_000));
    let first = piece(&mut stream);
    assert_eq!(writer.write_to_reader(b""), Ok(Some(0)));
    // Its buffer is larger than what is in it, which leaves no less room.
    assert_eq!(writer.write(&[2; 40_000]), Ok(BYTES_MAX - 40_000));
    assert!(!writer.has_room() && pipe.poll_room(&context).is_pending() && writer.memory_bytes() >= BYTES_MAX);
    let second = piece(&mut stream);
    assert!(!writer.has_room() && next(&mut stream).is_pending());
    // Few bytes more are not worth going on for.
    drop(second);
    assert!(writer.has_room() && pipe.poll_room(&context).is_pending());
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    drop(first);
    assert_eq!((woken.0.load(Ordering::SeqCst), writer.memory_bytes()), (1, 0));
    assert!(pipe.poll_room(&context).is_ready());
}

#[test]
fn what_was_written_comes_before_how_it_ended() {
    for (end, rest) in [(Ok(()), None), (Err(Failure::Deadline), Some(Err(Failure::Deadline)))] {
        let (mut writer, pipe, mut stream) = pipe(None, false);
        assert_eq!(writer.write(b"ab"), Ok(2));
        pipe.end(end, None);
        assert_eq!((&piece(&mut stream)[..], next(&mut stream)), (&b"ab"[..], Poll::Ready(rest)));
    }
}

#[test]
fn an_end_is_counted_once_whoever_comes_first() {
    let (_writer, before, stream) = pipe(None, false);
    assert_eq!((stream.accept(), before.end(Ok(()), None)), (None, true));
    let (_writer, after, stream) = pipe(None, false);
    assert_eq!((after.end(Err(Failure::Exit(1)), None), stream.accept()), (false, Some(Err(Failure::Exit(1)))));
}

#[test]
fn who_wants_no_more_is_noticed_unless_there_is_no_more() {
    let (mut writer, gone, stream) = pipe(None, false);
    while writer.has_room() {
        writer.write(&[0; 1 << 15]).unwrap();
    }
    assert!(gone.poll_closed(&Context::from_waker(Waker::noop())).is_pending());
    drop(stream);
    assert!(gone.is_closed() && writer.has_room() && writer.memory_bytes() == 0);
    assert_eq!((writer.write_to_reader(b"a"), writer.write(b"a")), (Ok(None), Ok(1)));
    let (mut writer, head, mut stream) = pipe(Some(3), true);
    assert_eq!((stream.length(), next(&mut stream)), (Some(3), Poll::Ready(None)));
    drop(stream);
    assert!(!head.is_closed() && writer.shortfall().is_none());
    assert_eq!((writer.write(b"abcd"), writer.memory_bytes()), (Ok(3), 0));
    // Nor does a client leave too early that has all that was announced.
    let (mut writer, whole, mut stream) = pipe(Some(3), false);
    assert_eq!((writer.write(b"abc"), &piece(&mut stream)[..], next(&mut stream)), (Ok(3), &b"abc"[..], Poll::Ready(None)));
    drop(stream);
    assert!(!whole.is_closed() && writer.memory_bytes() == 0);
}

#[test]
fn lengths_and_limits_are_kept() {
    let (mut writer, pipe, stream) = pipe(Some(3), false);
    assert_eq!((writer.write(b"ab"), writer.shortfall()), (Ok(2), Some(Failure::ReplyIncomplete)));
    assert_eq!((writer.write(b"cd"), writer.shortfall(), writer.write(b"")), (Ok(1), None, Ok(0)));
    assert_eq!(writer.write(b"d"), Err(Refused::Length));
    assert_eq!(stream.length(), Some(3));
    drop((pipe, stream));
    let mut writer = Writer::new(ReplyBytes::default(), 3, None, false, false);
    assert_eq!((writer.write(b"abcd"), writer.write(b"abc")), (Err(Refused::Limit), Ok(3)));
    // What is over already has a length.
    let (pipe, stream) = writer.begin().unwrap();
    assert_eq!(stream.length(), None);
    pipe.end(Ok(()), None);
    assert_eq!(stream.length(), Some(3));
}

fn fields(name: &'static str) -> Option<Box<Fields>> {
    let mut fields = Fields::default();
    fields.put(hyper::header::HeaderName::from_static(name), hyper::header::HeaderValue::from_static("7"), false).unwrap();
    Some(Box::new(fields))
}

#[test]
fn trailers_come_behind_all_that_was_written() {
    for trails in [false, true] {
        let mut writer = Writer::new(ReplyBytes::default(), 1 << 20, Some(3), false, trails);
        let (pipe, mut stream) = writer.begin().unwrap();
        assert_eq!(writer.write(b"abc"), Ok(3));
        assert_eq!(piece(&mut stream), "abc");
        // With its length it is at its end, unless trailers are to come.
        assert_eq!((stream.is_complete(), next(&mut stream).is_pending()), (!trails, trails));
        pipe.end(Ok(()), fields("x-sum"));
        assert!(matches!(next(&mut stream), Poll::Ready(None)));
        assert_eq!(stream.take_trailers().unwrap().names().unwrap(), "x-sum");
    }
    // Where they cannot be sent, they are not waited for.
    let mut writer = Writer::new(ReplyBytes::default(), 1 << 20, Some(0), false, true);
    let (_, mut stream) = writer.begin().unwrap();
    stream.without_trailers();
    assert!(stream.is_complete());
    // What has trailers is sent without a length, even if it is over by then.
    let (pipe, mut stream) = Writer::held(None).begin().unwrap();
    pipe.finish(Ok(fields("x-sum")));
    assert_eq!(stream.length(), None);
    stream.without_trailers();
    assert_eq!(stream.length(), Some(0));
}

#[test]
fn who_waits_for_room_is_woken_whoever_else_waits_for_the_client_to_go() {
    let (mut writer, pipe, mut stream) = pipe(None, false);
    let [room, closed] = [(); 2].map(|()| Arc::new(Woken::default()));
    let [room_waker, closed_waker] = [&room, &closed].map(|woken| Waker::from(Arc::clone(woken)));
    let count = |woken: &Woken| woken.0.load(Ordering::SeqCst);
    assert_eq!(writer.write(&[1; BYTES_MAX]), Ok(BYTES_MAX));
    assert!(pipe.poll_room(&Context::from_waker(&room_waker)).is_pending());
    assert!(pipe.poll_closed(&Context::from_waker(&closed_waker)).is_pending());
    drop(piece(&mut stream));
    assert_eq!((count(&room), count(&closed)), (1, 0));
    drop(stream);
    assert_eq!((count(&room), count(&closed)), (1, 1));
}

#[test]
fn a_stream_may_end_before_its_invocation_does() {
    let trailers = || Box::new(Fields::default());
    let (mut writer, pipe, mut stream) = pipe(None, false);
    assert_eq!(writer.write(b"all"), Ok(3));
    pipe.finish(Ok(Some(trailers())));
    pipe.finish(Err(Unfinished::GivenUp));
    assert_eq!((stream.length(), stream.is_complete(), writer.shortfall()), (Some(3), false, None));
    drop(piece(&mut stream));
    assert_eq!(next(&mut stream), Poll::Ready(None));
    // What the invocation says at its end is too late.
    assert!(!pipe.end(Err(Failure::Deadline), None));
    assert!(stream.take_trailers().is_some() && stream.is_complete());
    drop(stream);
    assert!(!pipe.is_closed());
    for (length, why, failure) in [
        (None, Unfinished::GivenUp, Failure::ReplyUnfinished),
        (Some(5), Unfinished::GivenUp, Failure::ReplyIncomplete),
        (Some(5), Unfinished::Length, Failure::ReplyIncomplete),
    ] {
        let (mut writer, pipe, mut stream) = self::pipe(length, false);
        assert_eq!(writer.write(b"half"), Ok(4));
        pipe.finish(Err(why));
        drop(piece(&mut stream));
        assert_eq!((next(&mut stream), writer.shortfall()), (Poll::Ready(Some(Err(failure.clone()))), Some(failure)));
    }
}
