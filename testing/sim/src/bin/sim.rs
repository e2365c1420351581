//! Runs simulations: `sim --lives 1000` many of them, `sim --seed 7` one of them with its trace, `sim --mistakes` with wrong decisions that must
//! be noticed.
#![expect(clippy::print_stdout, reason = "it talks to the person who runs it")]

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use clap::Parser;
use oarsman_agent::CoreDecisions;
use oarsman_sim::mistakes::{Mistake, ON_PURPOSE};
use oarsman_sim::{SimulationPlan, SimulationResult, invariants, run};

/// One of so many simulations is run twice, to compare the hashes.
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
        None if arguments.mistakes => check_mistakes(seeds)?,
        None => run_all(seeds)?,
    };
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_seed(seed: u64) -> Result<SimulationResult> {
    Ok(run(&SimulationPlan::from_seed(seed), Arc::new(CoreDecisions))?)
}

fn show(seed: u64) -> Result<(u64, u64)> {
    let result = run_seed(seed)?;
    result.records.iter().for_each(|record| println!("{record}"));
    println!("{:#?}", result.final_state);
    println!("trace {:016x}", result.hash);
    Ok(report(seed, &result))
}

fn run_all(seeds: std::ops::Range<u64>) -> Result<(u64, u64)> {
    let outcomes = in_parallel(seeds.collect(), |seed| {
        let result = run_seed(*seed)?;
        let again = if seed % TWICE == 0 { run_seed(*seed)?.hash } else { result.hash };
        if again != result.hash {
            println!("seed {seed}: lived again, it was another life: {again:016x}");
            return Ok((0, 1));
        }
        Ok(report(*seed, &result))
    })?;
    Ok(sum(&outcomes))
}

fn sum(outcomes: &[(u64, u64)]) -> (u64, u64) {
    (outcomes.iter().map(|it| it.0).sum(), outcomes.iter().map(|it| it.1).sum())
}

/// Calls a function for each item, on all processors: simulations are independent.
fn in_parallel<T: Send, R: Send>(
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

fn report(seed: u64, result: &SimulationResult) -> (u64, u64) {
    let violations = invariants::check(result);
    for violation in &violations {
        println!("seed {seed}: {violation}");
    }
    if violations.is_empty() { (1, 0) } else { (0, 1) }
}

/// Tens of thousands of lines about panics on purpose would hide other output.
fn silence_panics_on_purpose() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(ON_PURPOSE) {
            tell(panic);
        }
    }));
}

/// A mistake passes when an invariant noticed it.
fn check_mistakes(seeds: std::ops::Range<u64>) -> Result<(u64, u64)> {
    silence_panics_on_purpose();
    let outcomes = in_parallel(Mistake::ALL.to_vec(), |mistake| {
        let noticed = first_violation(*mistake, seeds.clone())?;
        match &noticed {
            Some((seed, how)) => println!("{mistake}: noticed in life {seed}: {how}"),
            None => println!("{mistake}: nobody noticed"),
        }
        Ok(if noticed.is_some() { (1, 0) } else { (0, 1) })
    })?;
    Ok(sum(&outcomes))
}

fn first_violation(
    mistake: Mistake,
    seeds: std::ops::Range<u64>,
) -> Result<Option<(u64, invariants::InvariantViolation)>> {
    for seed in seeds {
        let result = run(&SimulationPlan::from_seed(seed), mistake.decisions())?;
        if let Some(violation) = invariants::check(&result).into_iter().next() {
            return Ok(Some((seed, violation)));
        }
    }
    Ok(None)
}
