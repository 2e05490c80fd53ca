//! The online game: how long its initialisation takes with how many cores, and what its ticks take beside initialisations of other games.
//!
//! A game's world is made by requests that are under way at the same time; each makes a part of it. Then a tick is due every 50 ms. A tick that comes
//! late delays the next ones, as in any game, so times count from when ticks were due.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;

use super::classes::Classes;
use super::world::{self, Land, REGIONS};
use super::{Cores, artifact, quoted};
use crate::client::Client;
use crate::cores;
use crate::random::Random;
use crate::server::Server;
use crate::steps;

mod report;

pub use report::{Initialised, Report, Ticks};

/// The paper's numbers of players.
pub const PLAYERS: [usize; 2] = [16, 40];
/// Cores' worth of the server's time for an initialisation, in halves: half a core is one that another game wants, too.
pub const HALVES: [usize; 4] = [1, 2, 4, 8];
/// From one tick to the next.
const TICK: Duration = Duration::from_millis(50);
/// How long before a tick is due its client stops sleeping.
const AWAKE: Duration = Duration::from_millis(1);
/// Regions that one request makes.
const PART: usize = 8;
/// Requests under way for each core, so that none is idle.
const IN_FLIGHT: usize = 2;
/// The game that is measured; others have the numbers behind it.
const GAME: u64 = 1;

/// What is played.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Passes of rain over each region: how long an initialisation takes.
    pub passes: u32,
    /// How often each initialisation is measured.
    pub repeat: usize,
    /// How long each game is played, in seconds.
    pub seconds: f64,
    /// Workers of the server while ticks are measured.
    pub workers: usize,
    /// Classes to compare with none, if any.
    pub classes: Option<Classes>,
    /// Of inputs.
    pub seed: u64,
}

/// Measures both.
///
/// # Errors
///
/// If something does not start, or a reply is not what the rules say.
pub fn run(settings: &Settings, folder: &Path) -> Result<Report> {
    steps::step("game: function", || Ok((artifact("game", folder)?, "compiled".to_owned())))?;
    let machine = cores::all()?.len();
    let mut initialised = Vec::new();
    for halves in HALVES {
        let times = match halves.div_ceil(2) {
            workers if workers > machine => Vec::new(),
            workers => steps::step(&format!("initialisation, {} cores", halves as f64 / 2.0), || {
                let times = initialisations(settings, halves == 1, workers, folder)?;
                let shown = format!("{:.3} s", super::quantile(times.iter().copied(), 0.5));
                Ok((times, shown))
            })?,
        };
        initialised.push(Initialised { cores: halves as f64 / 2.0, seconds: times });
    }
    let land = steps::step("the world, natively", || {
        let regions = (0..REGIONS * REGIONS).flat_map(|number| world::region(GAME, number, settings.passes)).collect();
        Ok((Land::new(regions).context("the world has all its regions")?, "made".to_owned()))
    })?;
    let mut ticks = Vec::new();
    let classes = [Some(Classes::Off), settings.classes];
    for (classes, players) in classes.into_iter().flatten().flat_map(|classes| PLAYERS.map(|players| (classes, players))) {
        for beside in [false, true] {
            let name =
                format!("{players} players, {}, classes {}", if beside { "beside others" } else { "alone" }, classes.name());
            let late_ms = steps::step(&name, || {
                let late_ms = play(settings, &land, classes, players, beside, folder)?;
                let at = |share| super::quantile(late_ms.iter().copied(), share);
                let shown = format!("{} ticks, p50 {:.2} ms, p99 {:.2} ms", late_ms.len(), at(0.5), at(0.99));
                Ok((late_ms, shown))
            })?;
            ticks.push(Ticks { players, beside, classes, ms: late_ms });
        }
    }
    Ok(Report::new(settings, initialised, ticks))
}

fn start(cores: &Cores, classes: Classes, folder: &Path) -> Result<Server> {
    let path = quoted(&folder.join("game.so"));
    let mut config = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"none\"\nkv = \"memory\"\nworkers = {}\n{}",
        cores.workers(),
        classes.line()?
    );
    // The other entry is another function to the scheduler: with an equal share.
    for name in ["game", "other"] {
        config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {path}\ndeadline_ms = 600000\n"));
        for (id, phase, cpu_us) in [(1, "init", 80_000), (2, "few", 1_500), (3, "many", 4_000)] {
            config.push_str(&format!("[[functions.phases]]\nid = {id}\nname = \"{phase}\"\ncpu_us = {cpu_us}\n"));
        }
    }
    cores.start(|| Server::start_config(folder, &config))
}

fn ask(client: &mut Client, path: &str, body: &Bytes) -> Result<Bytes> {
    let reply = client.post(path, body, &[])?;
    ensure!(reply.status.is_success(), "{path}: status {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    Ok(reply.body)
}

fn init_path(function: &str, game: u64, part: usize, passes: u32) -> String {
    format!("/{function}?do=init&game={game}&from={}&count={PART}&passes={passes}", part * PART)
}

/// Makes a game's world, by so many requests at a time.
fn initialise(server: &Server, in_flight: usize, passes: u32) -> Result<()> {
    let next = AtomicUsize::new(0);
    let one = || -> Result<()> {
        let mut client = Client::connect(server.address())?;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= REGIONS * REGIONS / PART {
                return Ok(());
            }
            ask(&mut client, &init_path("game", GAME, part, passes), &Bytes::new())?;
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..in_flight).map(|_| scope.spawn(one)).collect();
        clients.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?)
    })
}

/// Does something while other games are initialised, so many requests at a time, again and again.
fn beside<T>(server: &Server, function: &str, in_flight: usize, passes: u32, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (done, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let one = || -> Result<()> {
        let mut client = Client::connect(server.address())?;
        while !done.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let parts = REGIONS * REGIONS / PART;
            let game = GAME + 1 + (number / parts % 4) as u64;
            ask(&mut client, &init_path(function, game, number % parts, passes), &Bytes::new())?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..in_flight).map(|_| scope.spawn(one)).collect();
        let result = work();
        done.store(true, Ordering::Relaxed);
        clients.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?)?;
        result
    })
}

/// Seconds of each.
fn initialisations(settings: &Settings, half: bool, workers: usize, folder: &Path) -> Result<Vec<f64>> {
    let cores = Cores::shared(workers)?;
    let server = start(&cores, Classes::Off, folder)?;
    let timed = || -> Result<f64> {
        let begin = Instant::now();
        initialise(&server, IN_FLIGHT * workers, settings.passes)?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let all = || (0..settings.repeat).map(|_| timed()).collect::<Result<Vec<f64>>>();
    // Half a core: the other half is another function's.
    let times = if half { beside(&server, "other", IN_FLIGHT, settings.passes, all)? } else { all()? };
    server.stop()?;
    Ok(times)
}

/// Plays a game: from when each tick was due to its reply, in milliseconds. Each reply is compared with what the rules say.
fn play(settings: &Settings, land: &Land, classes: Classes, players: usize, others: bool, folder: &Path) -> Result<Vec<f64>> {
    let cores = Cores::divided(settings.workers)?;
    let server = start(&cores, classes, folder)?;
    initialise(&server, IN_FLIGHT * settings.workers, settings.passes)?;
    let mut client = Client::connect(server.address())?;
    let mut state = world::players(GAME, players);
    let joined = ask(&mut client, &format!("/game?do=join&game={GAME}&players={players}"), &Bytes::new())?;
    ensure!(joined == state, "the players begin elsewhere than the rules say");
    let mut random = Random(settings.seed);
    let count = (settings.seconds / TICK.as_secs_f64()).ceil().max(1.0) as u32;
    let mut ticks = || -> Result<Vec<f64>> {
        let begin = Instant::now() + TICK;
        let mut all = Vec::with_capacity(count as usize);
        for tick in 0..count {
            let inputs: Vec<u8> = (0..players).map(|_| random.below(5) as u8).collect();
            let due = begin + TICK * tick;
            thread::sleep(due.saturating_duration_since(Instant::now()).saturating_sub(AWAKE));
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            let reply = ask(&mut client, &format!("/game?do=tick&game={GAME}"), &Bytes::from(inputs.clone()))?;
            all.push(due.elapsed().as_secs_f64() * 1e3);
            world::tick(land, &mut state, &inputs);
            ensure!(reply == state, "tick {tick}: the players are not where, or have not the scores that, the rules say");
        }
        Ok(all)
    };
    let played = if others { beside(&server, "game", IN_FLIGHT * settings.workers, settings.passes, ticks)? } else { ticks()? };
    server.stop()?;
    Ok(played)
}
