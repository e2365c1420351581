//! Lives lives: `sim --lives 1000` many of them, `sim --seed 7` one of them with all that happened in it, `sim --mistakes`
//! with wrong decisions that must be noticed.
#![expect(clippy::print_stdout, reason = "it talks to the person who runs it")]

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use clap::Parser;
use oarsman_agent::CoreDecisions;
use oarsman_lives::mistakes::{Mistake, ON_PURPOSE};
use oarsman_lives::{Plan, Testimony, invariants, live};

/// Every so many lives one is lived twice.
const TWICE: u64 = 20;

#[derive(Parser)]
#[command(about = "Simulated lives of the whole agent")]
struct Arguments {
    /// Live this one life and print its trace
    #[arg(long)]
    seed: Option<u64>,
    /// Live this many lives
    #[arg(long, default_value_t = 1000)]
    lives: u64,
    /// Begin with this seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Make each known mistake in turn, and see that it is noticed within that many lives
    #[arg(long)]
    mistakes: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let seeds = arguments.from..arguments.from.saturating_add(arguments.lives);
    let (passed, failed) = match arguments.seed {
        Some(seed) => show(seed)?,
        None if arguments.mistakes => make_mistakes(seeds)?,
        None => live_all(seeds)?,
    };
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn right(seed: u64) -> Result<Testimony> {
    Ok(live(&Plan::draw(seed), Arc::new(CoreDecisions))?)
}

fn show(seed: u64) -> Result<(u64, u64)> {
    let testimony = right(seed)?;
    testimony.records.iter().for_each(|record| println!("{record}"));
    println!("{:#?}", testimony.ending);
    println!("trace {:016x}", testimony.hash);
    Ok(tally(seed, &testimony))
}

fn live_all(seeds: std::ops::Range<u64>) -> Result<(u64, u64)> {
    let outcomes = side_by_side(seeds.collect(), |seed| {
        let testimony = right(*seed)?;
        let again = if seed % TWICE == 0 { right(*seed)?.hash } else { testimony.hash };
        if again != testimony.hash {
            println!("seed {seed}: lived again, it was another life: {again:016x}");
            return Ok((0, 1));
        }
        Ok(tally(*seed, &testimony))
    })?;
    Ok(sum(&outcomes))
}

fn sum(outcomes: &[(u64, u64)]) -> (u64, u64) {
    (outcomes.iter().map(|it| it.0).sum(), outcomes.iter().map(|it| it.1).sum())
}

/// Does something with each of many, on all processors: lives know nothing of each other.
fn side_by_side<T: Send, R: Send>(
    many: Vec<T>,
    what: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let queue = Mutex::new(many.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || std::iter::from_fn(next).map(|one| what(&one)).collect::<Result<Vec<R>>>();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism()?.get();
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| anyhow!("a life has panicked"))??);
        }
        Ok(all)
    })
}

fn tally(seed: u64, testimony: &Testimony) -> (u64, u64) {
    let violations = invariants::judge(testimony);
    for violation in &violations {
        println!("seed {seed}: {violation}");
    }
    if violations.is_empty() { (1, 0) } else { (0, 1) }
}

/// Tens of thousands of lines about panics on purpose would hide what matters.
fn silence_panics_on_purpose() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(ON_PURPOSE) {
            tell(panic);
        }
    }));
}

/// A mistake passes when an invariant noticed it.
fn make_mistakes(seeds: std::ops::Range<u64>) -> Result<(u64, u64)> {
    silence_panics_on_purpose();
    let outcomes = side_by_side(Mistake::ALL.to_vec(), |mistake| {
        let noticed = first_noticed(*mistake, seeds.clone())?;
        match &noticed {
            Some((seed, how)) => println!("{mistake}: noticed in life {seed}: {how}"),
            None => println!("{mistake}: nobody noticed"),
        }
        Ok(if noticed.is_some() { (1, 0) } else { (0, 1) })
    })?;
    Ok(sum(&outcomes))
}

fn first_noticed(
    mistake: Mistake,
    seeds: std::ops::Range<u64>,
) -> Result<Option<(u64, invariants::Violation)>> {
    for seed in seeds {
        let testimony = live(&Plan::draw(seed), mistake.decisions())?;
        if let Some(violation) = invariants::judge(&testimony).into_iter().next() {
            return Ok(Some((seed, violation)));
        }
    }
    Ok(None)
}
