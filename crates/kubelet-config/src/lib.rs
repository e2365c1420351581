//! KubeletConfiguration v1beta1 and the flags of the kubelet: read, merged, defaulted and judged.
//!
//! Texts come in with their names, values and problems go out; nothing is read from disk here. [`load`] is what a kubelet
//! starts with: defaults, then the file, then drop-ins, then flags. [`check`] is for those who want to hear everything that
//! is wrong with one file.

pub mod amounts;
pub mod choices;
mod decode;
mod defaults;
mod field;
mod fields;
pub mod flags;
mod gates;
mod layers;
mod nearest;
pub mod parts;
mod problem;
mod span;
#[cfg(test)]
mod tests;
mod validate;

pub use decode::Text;
pub use field::Field;
pub use fields::KubeletConfiguration;
pub use gates::is_enabled;
pub use layers::{Layer, Loaded, check, load};
pub use problem::{Problem, Problems};
pub use span::Span;
