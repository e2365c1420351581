//! Simulated lives of the whole agent: drawn from a seed, lived in the world, judged by what the world saw.
//!
//! [`Plan::draw`] makes a life of a seed: pods, edits, deletions, faults, the moments at which the agent is killed.
//! [`live`] lives it with the program's own assembly of the agent over the world's seams. [`invariants::judge`] reads the
//! world's trace, never the agent's opinion. [`mistakes`] are wrong decisions that the invariants must notice.

mod draw;
pub mod invariants;
mod life;
pub mod mistakes;
mod plan;
pub mod stage;

pub use life::{Ending, Testimony, config, live, membership};
pub use plan::{Act, Plan};
