//! The contract of CRI runtimes: one suite of cases that every Runtime has to pass, fake or real.
//!
//! A case is a sentence and an async function on a [`CaseContext`], which makes sandboxes and containers under names of its own and removes them
//! afterwards whatever happened. A runtime is tested through a [`Harness`]; containers run scripts of `oarsman-script`, so that a fake can
//! interpret them too.
//!
//! The cases state what real containerd was seen to do and what the agent relies on. Where runtimes may differ and the agent does not depend on
//! it, there is no case.

mod cases;
mod context;
mod harness;
mod syscalls;
mod trials;

pub use context::{CaseContext, TestSandbox};
pub use harness::{Harness, ImageNames, PrivateImage};
pub use trials::{ContractCase, cases, completion, trials};
