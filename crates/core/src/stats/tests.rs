//! Tables of the parsers, and what is shown of their numbers.

mod cgroup_files;
mod cpu_rates;
mod expositions;
mod fixture;
mod measured_pods;
mod proc_files;
mod summaries;
