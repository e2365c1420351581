//! What an API server does to a pod on creation: decoding, defaulting, validation.
//!
//! A pod from a file or a URL, or from a person with no cluster at all, never passes an API
//! server, so the agent holds it to the same rules. Every rule here is held against the answers
//! of kube-apiserver in `testing/pods/golden` (`cargo xtask golden` asks for them anew).
//!
//! The usual course is [`decode::decode_pod`], then [`defaults::set_defaults`], then
//! [`create::prepare`] where we stand in for the server, then [`validate::validate_pod`].

pub mod create;
pub mod decode;
pub mod defaults;
pub mod error;
pub mod path;
pub mod sysctl;
pub mod validate;
mod wire;
