//! Independent pieces of work on several threads, the largest first.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::error::CompileError;

/// Of each thread's stack: for LLVM's recursion over what a module nests deeply. Only what is used becomes memory.
pub(crate) const STACK_BYTES: usize = 256 << 20;

/// How many threads there will be for so many pieces, if `jobs` are asked for: as many as there are processors if that is zero.
pub(crate) fn threads(jobs: usize, pieces: usize) -> usize {
    let wanted = if jobs == 0 { thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    wanted.min(pieces)
}

/// Does pieces `0..weights.len()` and returns what they give, in that order. `done` is told of each, on this thread. After a failure no piece
/// is begun any more; the failure of the first piece that failed is returned.
///
/// # Errors
/// Those of `work`, and when no thread can be started.
pub(crate) fn map<T: Send>(
    weights: &[usize],
    threads: usize,
    work: impl Fn(usize) -> Result<T, CompileError> + Sync,
    mut done: impl FnMut(usize),
) -> Result<Vec<T>, CompileError> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(weights[index]));
    let (next, results) = (AtomicUsize::new(0), mpsc::channel());
    let mut outputs: Vec<Option<T>> = weights.iter().map(|_| None).collect();
    let mut failure: Option<(usize, CompileError)> = None;
    let worker = |results: &mpsc::Sender<(usize, Result<T, CompileError>)>| {
        // Relaxed: what a piece reads was there before the threads, and results are handed over by the channel.
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(index);
            if result.is_err() {
                next.store(order.len(), Ordering::Relaxed);
            }
            if results.send((index, result)).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let (sender, receiver) = results;
        let mut workers = Vec::new();
        for number in 0..threads {
            let sender = sender.clone();
            let builder = thread::Builder::new().name(format!("awsm {number}")).stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, move || worker(&sender)) {
                Ok(worker) => workers.push(worker),
                // Fewer threads do as well.
                Err(error) if workers.is_empty() => return Err(CompileError::io("starting a thread")(error)),
                Err(_) => break,
            }
        }
        drop(sender);
        for (index, result) in receiver {
            match result {
                Ok(output) => outputs[index] = Some(output),
                Err(error) if failure.as_ref().is_none_or(|(first, _)| index < *first) => failure = Some((index, error)),
                Err(_) => {}
            }
            done(index);
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        Ok(())
    })?;
    match failure {
        Some((_, error)) => Err(error),
        None => Ok(outputs.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 5] {
            let mut done = Vec::new();
            let results = map(&[1, 9, 5], threads, |index| Ok(index * 10), |index| done.push(index)).unwrap();
            assert_eq!(results, [0, 10, 20]);
            if threads == 1 {
                assert_eq!(done, [1, 2, 0], "the largest first");
            }
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let work = |index| if index == 1 { Err(CompileError::artifact("one")) } else { Ok(index) };
        let mut begun = 0;
        let error = map(&[1, 9, 5], 1, work, |_| begun += 1).unwrap_err();
        assert!(error.to_string().contains("one") && begun == 1, "{error}, {begun}");
    }
}
