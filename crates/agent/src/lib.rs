//! The loops of the node agent and their assembly as a library.
pub mod seams;
