//! Whether to pull an image, and what to say about how that went.

pub mod credentials;
pub mod keyring;
pub mod outcome;
pub mod policy;
pub mod providers;
pub mod pull_records;
pub mod pull_secrets;
pub mod pull_slots;
pub mod pulls;
pub mod verification;
