//! Every decision of the node agent, as pure functions from plain data to plain data.
