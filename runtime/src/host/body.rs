//! A request's body: all of it, or what has come of it so far and where the rest comes from.
//!
//! ```text
//!   connection --Source--> Body --fd_read--> guest
//! ```
//!
//! A [`Source`] is only asked for more when the guest has read what there is: so a client that sends faster than its function reads has to wait, and no more
//! than one piece is kept here.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderMap;
use sledge_sandbox::Share;

use super::Stop;
use crate::outcome::Failure;
use crate::timeout::before;

/// A request's body, in the pieces in which it came.
#[derive(Debug, Default)]
pub struct Body {
    pieces: VecDeque<Bytes>,
    /// Bytes of all of them.
    left: usize,
    /// What is reserved for them.
    share: Option<Share>,
    /// What most do not have.
    more: Option<Box<More>>,
}

/// What comes behind the pieces of a body.
#[derive(Debug, Default)]
struct More {
    /// Where more comes from; none at the end, and while it is waited for.
    source: Option<Box<dyn Source>>,
    /// For how long it may still be waited for.
    time_left: Duration,
    /// Since when it is waited for where it is.
    waits_since: Option<Instant>,
    /// Why there is no more.
    broken: Option<BodyError>,
    trailers: HeaderMap,
}

/// Where a body comes from that is not there yet.
pub trait Source: fmt::Debug + Send {
    /// What comes next. Not to be asked again behind the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece>;
}

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Some of its bytes.
    Data(Bytes),
    /// Nothing: it is complete, and has these trailers.
    End(HeaderMap),
    /// Nothing: the rest does not come.
    Broken(BodyError),
}

/// Why the rest of a body does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is larger than it may be.
    TooLarge,
    /// It takes longer than it may.
    TooSlow,
    /// It ended early.
    Broken,
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Failure {
        match error {
            BodyError::TooLarge => Failure::BodyTooLarge,
            BodyError::TooSlow => Failure::BodyTimeout,
            BodyError::Broken => Failure::BodyBroken,
        }
    }
}

/// What waiting for a body came to, to be [given back](Body::came) to it.
#[derive(Debug)]
pub struct Came {
    source: Box<dyn Source>,
    /// None when the time was over before.
    piece: Option<Piece>,
    took: Duration,
}

impl Body {
    /// One that comes from there while it is read. In all, reading may wait for it so long.
    #[must_use]
    pub fn coming(source: Box<dyn Source>, time_max: Duration) -> Body {
        let more = More { source: Some(source), time_left: time_max, ..More::default() };
        Body { more: Some(Box::new(more)), ..Body::default() }
    }

    /// The same once more, for an invocation that may run again; what is reserved for it goes with the one that runs first. None of one that comes while it is read, or that is
    /// larger than so many bytes.
    #[must_use]
    pub fn again(&mut self, bytes_max: usize) -> Option<Body> {
        let more = match &self.more {
            None => None,
            Some(more) if more.source.is_none() && more.waits_since.is_none() && more.broken.is_none() => {
                Some(Box::new(More { trailers: more.trailers.clone(), ..More::default() }))
            }
            Some(_) => return None,
        };
        (self.left <= bytes_max).then(|| Body { pieces: self.pieces.clone(), left: self.left, share: self.share.take(), more })
    }

    /// All of it that is there, as one piece.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() < 2 {
            return self.pieces.pop_front().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(self.left);
        self.pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        all.into()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.left += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Says what is reserved for it.
    pub fn set_share(&mut self, share: Option<Share>) {
        self.share = share;
    }

    /// Hands over what is reserved for it.
    pub fn take_share(&mut self) -> Option<Share> {
        self.share.take()
    }

    /// Says what came behind it.
    pub fn set_trailers(&mut self, trailers: HeaderMap) {
        if !trailers.is_empty() {
            self.more.get_or_insert_default().trailers = trailers;
        }
    }

    /// What came behind it; none as long as that is not known. No trailers are none of `Some`.
    #[must_use]
    pub fn trailers(&self) -> Option<Option<&HeaderMap>> {
        match &self.more {
            None => Some(None),
            Some(more) if more.source.is_some() || more.broken.is_some() => None,
            Some(more) => Some(Some(&more.trailers)),
        }
    }

    /// Bytes that are left, of those that are there.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Whether all of it is there, and has at most so many bytes; takes what has come meanwhile.
    pub fn is_whole(&mut self, bytes_max: usize) -> bool {
        loop {
            if self.left > bytes_max || self.more.as_ref().is_some_and(|more| more.broken.is_some()) {
                return false;
            }
            let Some(source) = self.more.as_mut().and_then(|more| more.source.as_mut()) else { return true };
            // As in `is_ready`.
            match source.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(piece) => self.take(piece),
                Poll::Pending => return false,
            }
        }
    }

    /// Whether all of it is there, and nothing behind it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.trailers().is_some_and(|trailers| trailers.is_none_or(HeaderMap::is_empty))
    }

    /// What is there of it, in the pieces in which it is read.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// Whether nothing can be read before more has come.
    #[must_use]
    pub fn must_wait(&self) -> bool {
        self.left == 0 && self.more.as_ref().is_some_and(|more| more.source.is_some())
    }

    /// Whether reading would not wait; takes what has come meanwhile.
    pub fn is_ready(&mut self) -> bool {
        // A guest that has to wait is woken by another look, with a waker.
        self.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// As [`is_ready`](Body::is_ready), with a waker.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.must_wait()
            && let Some(source) = self.more.as_mut().and_then(|more| more.source.as_mut())
        {
            match source.poll_next(context) {
                Poll::Ready(piece) => self.take(piece),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Begins to wait for more without taking it from its place; until when that may last. None where something can be read. The next look is to be
    /// [`look`](Body::look).
    pub fn begin_wait(&mut self, context: &mut Context<'_>) -> Option<Instant> {
        if self.poll_ready(context).is_ready() {
            return None;
        }
        let more = self.more.as_mut()?;
        let now = Instant::now();
        more.waits_since = Some(now);
        Some(now + more.time_left)
    }

    /// As [`is_ready`](Body::is_ready), where a wait may have [begun](Body::begin_wait): it is over now, and counts.
    pub fn look(&mut self) -> bool {
        let is_ready = self.is_ready();
        let Some(more) = &mut self.more else { return is_ready };
        if let Some(since) = more.waits_since.take() {
            more.time_left = more.time_left.saturating_sub(since.elapsed());
            if !is_ready && more.time_left.is_zero() {
                self.take(Piece::Broken(BodyError::TooSlow));
                return true;
            }
        }
        is_ready
    }

    /// Takes at most so many bytes from the start, as one piece of them has.
    ///
    /// # Errors
    /// When the rest does not come.
    pub fn take_piece(&mut self, bytes_max: usize) -> Result<Bytes, Stop> {
        if self.left == 0
            && let Some(error) = self.more.as_ref().and_then(|more| more.broken)
        {
            return Err(Stop::Body(error));
        }
        let Some(first) = self.pieces.front_mut() else { return Ok(Bytes::new()) };
        let piece = first.split_to(first.len().min(bytes_max));
        if first.is_empty() {
            self.pieces.pop_front();
        }
        self.left -= piece.len();
        Ok(piece)
    }

    /// Waits for more, but not beyond `until`; none where there is nothing to wait for. What it comes to is to be [given back](Body::came).
    pub fn next(&mut self, until: Option<Instant>) -> Option<impl Future<Output = Came> + use<>> {
        let more = self.more.as_mut()?;
        let mut source = more.source.take()?;
        let time_left = more.time_left;
        Some(async move {
            let begin = Instant::now();
            let end = begin + time_left;
            let piece = before(|| until.map_or(end, |until| until.min(end)), poll_fn(|context| source.poll_next(context))).await;
            let is_late = piece.is_none() && until.is_none_or(|until| end <= until);
            let piece = if is_late { Some(Piece::Broken(BodyError::TooSlow)) } else { piece };
            Came { source, piece, took: begin.elapsed() }
        })
    }

    /// Goes on with what waiting for it came to.
    pub fn came(&mut self, came: Came) {
        let Came { source, piece, took } = came;
        let more = self.more.get_or_insert_default();
        more.time_left = more.time_left.saturating_sub(took);
        more.source = Some(source);
        if let Some(piece) = piece {
            self.take(piece);
        }
    }

    fn take(&mut self, piece: Piece) {
        let more = self.more.get_or_insert_default();
        match piece {
            Piece::Data(bytes) => return self.push(bytes),
            Piece::End(trailers) => more.trailers = trailers,
            Piece::Broken(error) => more.broken = Some(error),
        }
        more.source = None;
    }

    /// Fills `into` from the start as far as the body goes, and drops what was read.
    ///
    /// # Errors
    /// When the rest does not come.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Stop> {
        if self.left == 0
            && let Some(error) = self.more.as_ref().and_then(|more| more.broken)
        {
            return Err(Stop::Body(error));
        }
        let mut done = 0;
        while done < into.len()
            && let Some(piece) = self.pieces.front_mut()
        {
            let count = piece.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&piece.split_to(count));
            done += count;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
        self.left -= done;
        Ok(done)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        let mut body = Body::default();
        body.push(bytes);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces that are there, and for how many looks none is.
    #[derive(Debug)]
    struct Pieces(VecDeque<Option<Piece>>);

    impl Source for Pieces {
        fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
            match self.0.pop_front() {
                Some(Some(piece)) => Poll::Ready(piece),
                Some(None) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Pending,
            }
        }
    }

    fn coming(pieces: Vec<Option<Piece>>, time_max: Duration) -> Body {
        Body::coming(Box::new(Pieces(pieces.into())), time_max)
    }

    fn wait(body: &mut Body, until: Option<Instant>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let next = body.next(until).unwrap();
        let came = runtime.block_on(next);
        body.came(came);
    }

    #[test]
    fn a_body_is_whole_when_its_end_has_come_and_it_is_no_larger_than_asked_for() {
        let data = |text: &'static str| Some(Piece::Data(Bytes::from_static(text.as_bytes())));
        let time = Duration::from_secs(10);
        assert!(Body::default().is_whole(0) && Body::from(Bytes::from_static(b"abc")).is_whole(3));
        assert!(!Body::from(Bytes::from_static(b"abc")).is_whole(2));
        let mut trailers = HeaderMap::new();
        trailers.insert("x", "y".parse().unwrap());
        let mut body = coming(vec![data("ab"), data("c"), Some(Piece::End(trailers))], time);
        assert!(body.is_whole(3) && body.left() == 3 && body.trailers().flatten().is_some());
        // What has not come is looked for again, and what is too large is not taken any further.
        let mut body = coming(vec![data("ab"), None, Some(Piece::End(HeaderMap::new()))], time);
        assert_eq!([body.is_whole(2), body.is_whole(2)], [false, true]);
        let mut body = coming(vec![data("abc"), data("d"), Some(Piece::End(HeaderMap::new()))], time);
        assert!(!body.is_whole(2) && body.left() == 3);
        let mut body = coming(vec![data("a"), Some(Piece::Broken(BodyError::Broken))], time);
        assert!(!body.is_whole(9) && !body.is_whole(9));
        let mut into = [0; 4];
        assert_eq!((body.read(&mut into), body.read(&mut into)), (Ok(1), Err(Stop::Body(BodyError::Broken))));
    }

    #[test]
    fn a_body_is_read_across_its_pieces() {
        let mut body = Body::default();
        for piece in ["ab", "", "cde", "f"] {
            body.push(Bytes::from_static(piece.as_bytes()));
        }
        let mut into = [0; 4];
        assert_eq!((body.read(&mut into), &into), (Ok(4), b"abcd"));
        assert_eq!((body.read(&mut into), &into[..2]), (Ok(2), &b"ef"[..]));
        assert_eq!((body.read(&mut into), body.trailers()), (Ok(0), Some(None)));
        assert!(!body.must_wait() && body.is_ready() && body.next(None).is_none());
    }

    #[test]
    fn a_body_that_comes_is_asked_for_when_it_is_read() {
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "7".parse().unwrap())]);
        let data = Some(Piece::Data(Bytes::from_static(b"abc")));
        let mut body = coming(vec![None, data, None, Some(Piece::End(trailers.clone()))], Duration::from_secs(60));
        assert!(body.must_wait() && !body.is_ready() && body.trailers().is_none());
        wait(&mut body, None);
        let mut into = [0; 2];
        assert_eq!((body.must_wait(), body.read(&mut into), body.read(&mut into)), (false, Ok(2), Ok(1)));
        assert!(body.must_wait() && body.trailers().is_none());
        wait(&mut body, None);
        assert_eq!((body.must_wait(), body.read(&mut into)), (false, Ok(0)));
        assert_eq!(body.trailers(), Some(Some(&trailers)));
    }

    #[test]
    fn what_is_waited_for_is_counted_and_a_pause_is_not_the_end() {
        let mut body = coming(vec![], Duration::from_millis(30));
        wait(&mut body, Some(Instant::now() + Duration::from_millis(10)));
        assert!(body.must_wait(), "it may still come");
        wait(&mut body, None);
        assert_eq!((body.must_wait(), body.is_ready()), (false, true));
        assert_eq!(body.read(&mut [0; 1]), Err(Stop::Body(BodyError::TooSlow)));
    }

    #[test]
    fn what_came_before_a_break_is_read_first() {
        let data = Some(Piece::Data(Bytes::from_static(b"abc")));
        let mut body = coming(vec![data, Some(Piece::Broken(BodyError::Broken))], Duration::from_secs(60));
        assert!(body.is_ready());
        let mut into = [0; 8];
        assert_eq!(body.read(&mut into), Ok(3));
        assert!(body.is_ready() && body.trailers().is_none());
        assert_eq!(body.read(&mut into), Err(Stop::Body(BodyError::Broken)));
    }
}
