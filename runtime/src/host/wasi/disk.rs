//! What may wait for a disk.

use super::Errno;
use crate::blocking;
use crate::host::{Call, Flat, Stop};

/// Does `work`, which may wait for a disk and knows nothing of the guest, while others run; then, with the guest's memory and context,
/// `finish` with what came of it.
pub(super) fn on_disk<T: Send + 'static>(
    call: &mut Call<'_>,
    work: impl FnOnce() -> Result<T, Errno> + Send + 'static,
    finish: impl FnOnce(&mut Call<'_>, T) -> Result<(), Stop> + Send + 'static,
) -> Result<(), Stop> {
    Err(begin(call, work, move |call, result| finish(call, result?)))
}

/// The same where `finish` also says what comes of a failure.
pub(in crate::host) fn begin<T: Send + 'static, R: Into<Flat>>(
    call: &mut Call<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    finish: impl FnOnce(&mut Call<'_>, T) -> Result<R, Stop> + Send + 'static,
) -> Stop {
    // An invocation with operations has others that want the disk, and so have the worker's other guests.
    let disk = call.context.operations.as_ref().map(|operations| operations.disk());
    let run = async move {
        let _turn = match disk {
            Some(disk) => disk.acquire_owned().await.ok(),
            None => None,
        };
        // Begun when it is polled: that is where there is a runtime.
        blocking::run(work).await
    };
    call.wait(run, finish)
}

/// The same where there is nothing to finish.
pub(super) fn just_on_disk(call: &mut Call<'_>, work: impl FnOnce() -> Result<(), Errno> + Send + 'static) -> Result<(), Stop> {
    on_disk(call, work, |_, ()| Ok(()))
}
