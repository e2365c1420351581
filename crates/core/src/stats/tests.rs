//! Parsers, rates and renderings of what a node uses.

mod cgroup_files;
mod cpu_rates;
mod expositions;
mod fixture;
mod measured_pods;
mod proc_files;
mod summaries;
