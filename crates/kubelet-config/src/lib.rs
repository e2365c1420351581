//! KubeletConfiguration v1beta1 and the flags of the kubelet: parsed, merged, defaulted and validated.
//!
//! Texts come in with their paths, values and problems go out; nothing is read from disk here. [`load`] gives what a kubelet starts with:
//! defaults, then the file, then drop-ins, then flags. [`check`] gives everything that is wrong with one file.

mod configuration;
mod decode;
mod defaults;
pub mod enums;
mod feature_gates;
mod field_path;
pub mod flags;
mod go_duration;
mod layers;
mod problem;
pub mod sections;
mod suggestion;
#[cfg(test)]
mod tests;
pub mod threshold;
mod validate;

pub use configuration::KubeletConfiguration;
pub use decode::ConfigFile;
pub use feature_gates::{feature_stage, is_enabled};
pub use field_path::FieldPath;
pub use go_duration::GoDuration;
pub use layers::{ConfigLayer, LoadedConfig, check, load};
pub use problem::{Problem, Problems};
