//! The settings of the endpoints that show the node and its agent, and change the agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use oarsman_core::zpages::StatusFacts;

/// Which of these endpoints are served; by default none is. All of them are debugging handlers.
#[derive(Clone, Debug, Default)]
pub struct NodeEndpointSettings {
    /// `/logs/`; none if it is switched off.
    pub node_logs: Option<NodeLogSettings>,
    /// `/flagz`: every flag with its value, without secrets; none if its gate is off.
    pub flags: Option<BTreeMap<String, String>>,
    /// `/statusz`; none if its gate is off.
    pub status: Option<StatusFacts>,
    /// `/checkpoint`: the agent's root directory, below which archives are written; none if its gate is off.
    pub checkpoint_root: Option<PathBuf>,
    /// `/debug/pprof`: the words of the command line, without secrets; none if it is switched off.
    pub command_line: Option<Vec<String>>,
    /// Whether `/debug/flags/v` changes the verbosity of the log.
    pub debug_flags: bool,
}

/// What `/logs/` serves.
#[derive(Clone, Debug)]
pub struct NodeLogSettings {
    /// The directory of the node's logs.
    pub directory: PathBuf,
    /// Whether `query=` is answered.
    pub query: bool,
}
