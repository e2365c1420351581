//! Changes of pods' objects, for the trace.

use std::fmt;

/// A change of a pod's object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChange {
    /// A user created it.
    Created,
    /// A user changed it.
    Updated {
        /// Its new generation.
        generation: i64,
    },
    /// A user deleted it with this grace period in seconds.
    DeletionAsked {
        /// The seconds.
        grace: i64,
    },
    /// A user deleted it, and it is gone.
    Vanished,
    /// An agent published a status.
    Published {
        /// The phase in it; empty without one.
        phase: String,
    },
    /// An agent deleted it, and it is gone.
    DeletedByAgent {
        /// The stored phase was a terminal one.
        terminal: bool,
        /// A user had deleted it before.
        asked: bool,
    },
}

impl fmt::Display for ClusterChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Updated { generation } => write!(f, "updated to generation {generation}"),
            Self::DeletionAsked { grace } => write!(f, "to be deleted within {grace} s"),
            Self::Vanished => f.write_str("deleted by a user"),
            Self::Published { phase } => write!(f, "published as {phase}"),
            Self::DeletedByAgent { terminal, asked } => {
                write!(f, "deleted by the agent (terminal: {terminal}, asked for: {asked})")
            }
        }
    }
}
