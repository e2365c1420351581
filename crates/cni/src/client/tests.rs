//! Plugins that are scripts: what they are called with, in which order, and what becomes of those that misbehave.

mod fake_plugins;
mod hostile;
mod order;
