//! Seccomp profiles as OCI has them, compiled to filters.
//!
//! `seccompiler` makes filters with one action for what matches and one for the rest; the kernel takes the strictest answer of several filters.
//! So a profile becomes one filter for each action that is not the default one: the last installed allows all calls that a rule names and gives
//! the default action to the rest, and the others give their action to their calls.

use std::collections::BTreeMap;
use std::io;

use oarsman_host::seccomp::{FilterInstruction, install_filter};
use oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompOperator, LinuxSyscall,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

mod numbers;
mod runtime_default;
#[cfg(test)]
mod tests;
mod x32;

pub use runtime_default::runtime_default;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeccompError {
    /// It asks for something that our filters cannot do.
    #[error("the seccomp profile cannot be used: {0}")]
    Unsupported(String),
    /// The compiler refuses it.
    #[error("the seccomp profile cannot be compiled: {0}")]
    Compile(#[from] seccompiler::BackendError),
    /// It is not a profile.
    #[error("the seccomp profile cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// Filters in the order in which they are installed.
#[derive(Clone, Debug, Default)]
pub struct SeccompFilters(Vec<BpfProgram>);

impl SeccompFilters {
    /// Installs them in this thread, for good.
    ///
    /// # Errors
    /// When the kernel refuses one: without `CAP_SYS_ADMIN` or `no_new_privs`, or because a filter before it forbids to install one.
    pub fn install(&self) -> io::Result<()> {
        for program in &self.0 {
            let instructions = program.iter().map(|one| FilterInstruction {
                code: one.code,
                jump_true: one.jt,
                jump_false: one.jf,
                operand: one.k,
            });
            install_filter(&instructions.collect::<Vec<_>>()).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot install a seccomp filter: {error}"))
            })?;
        }
        Ok(())
    }
}

/// Reads a profile of the form that OCI and Docker have, such as a `Localhost` profile's file.
///
/// # Errors
/// When it is not of that form.
pub fn parse(text: &[u8]) -> Result<LinuxSeccomp, SeccompError> {
    Ok(serde_json::from_slice(text)?)
}

/// The calls of one action.
type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Compiles a profile for this machine. Calls that this machine does not have are left out, as other runtimes do.
///
/// # Errors
/// When it asks for what cannot be done; the error says what.
pub fn compile(profile: &LinuxSeccomp) -> Result<SeccompFilters, SeccompError> {
    check_whole(profile)?;
    let default = action(profile.default_action(), profile.default_errno_ret())?;
    // Actions have no order; the number that the kernel knows them by has.
    let mut groups: BTreeMap<u32, (SeccompAction, SeccompRules)> = BTreeMap::new();
    let mut named = SeccompRules::new();
    for rule in profile.syscalls().iter().flatten() {
        let wanted = action(rule.action(), rule.errno_ret())?;
        if wanted == default {
            continue;
        }
        for number in rule.names().iter().filter_map(|name| numbers::of(name)) {
            let (_, group) = groups
                .entry(u32::from(wanted.clone()))
                .or_insert_with(|| (wanted.clone(), SeccompRules::new()));
            add(group, number, rule)?;
            add(&mut named, number, rule)?;
        }
    }
    let arch = target()?;
    let mut filters = Vec::new();
    // What lists no call allows none.
    if default == SeccompAction::Allow && !groups.is_empty() && cfg!(target_arch = "x86_64") {
        filters.push(x32::refused());
    }
    for (action, rules) in
        groups.into_values().filter(|(action, _)| *action != SeccompAction::Allow)
    {
        filters.push(program(rules, SeccompAction::Allow, action, arch)?);
    }
    if default != SeccompAction::Allow {
        filters.push(program(named, default, SeccompAction::Allow, arch)?);
    }
    Ok(SeccompFilters(filters))
}

fn program(
    rules: SeccompRules,
    otherwise: SeccompAction,
    matched: SeccompAction,
    arch: TargetArch,
) -> Result<BpfProgram, SeccompError> {
    // A call with a rule that has no condition needs none of its other rules.
    Ok(SeccompFilter::new(rules, otherwise, matched, arch)?.try_into()?)
}

/// Adds a rule for a call. An empty list stands for the call whatever its arguments are.
fn add(rules: &mut SeccompRules, number: i64, rule: &LinuxSyscall) -> Result<(), SeccompError> {
    let arguments = rule.args().as_deref().unwrap_or_default();
    let known = rules.entry(number);
    if arguments.is_empty() {
        known.insert_entry(Vec::new());
        return Ok(());
    }
    let is_new = matches!(known, std::collections::btree_map::Entry::Vacant(_));
    let known = known.or_default();
    if is_new || !known.is_empty() {
        known.extend(conditions(arguments)?);
    }
    Ok(())
}

/// All conditions of a rule have to hold; but where one argument has several, each is a rule of its own, as in runc.
fn conditions(arguments: &[LinuxSeccompArg]) -> Result<Vec<SeccompRule>, SeccompError> {
    let conditions = arguments.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let is_repeated = |one: &LinuxSeccompArg| {
        arguments.iter().filter(|other| other.index() == one.index()).count() > 1
    };
    if !arguments.iter().any(is_repeated) {
        return Ok(vec![SeccompRule::new(conditions)?]);
    }
    conditions.into_iter().map(|one| Ok(SeccompRule::new(vec![one])?)).collect()
}

fn condition(argument: &LinuxSeccompArg) -> Result<SeccompCondition, SeccompError> {
    let index = u8::try_from(argument.index()).unwrap_or(u8::MAX);
    let (value, second) = (argument.value(), argument.value_two().unwrap_or(0));
    let (operator, value) = match argument.op() {
        LinuxSeccompOperator::ScmpCmpNe => (SeccompCmpOp::Ne, value),
        LinuxSeccompOperator::ScmpCmpLt => (SeccompCmpOp::Lt, value),
        LinuxSeccompOperator::ScmpCmpLe => (SeccompCmpOp::Le, value),
        LinuxSeccompOperator::ScmpCmpEq => (SeccompCmpOp::Eq, value),
        LinuxSeccompOperator::ScmpCmpGe => (SeccompCmpOp::Ge, value),
        LinuxSeccompOperator::ScmpCmpGt => (SeccompCmpOp::Gt, value),
        LinuxSeccompOperator::ScmpCmpMaskedEq => (SeccompCmpOp::MaskedEq(value), second),
    };
    Ok(SeccompCondition::new(index, SeccompCmpArgLen::Qword, operator, value)?)
}

fn action(action: LinuxSeccompAction, errno: Option<u32>) -> Result<SeccompAction, SeccompError> {
    const EPERM: u32 = 1;
    Ok(match action {
        LinuxSeccompAction::ScmpActKill | LinuxSeccompAction::ScmpActKillThread => {
            SeccompAction::KillThread
        }
        LinuxSeccompAction::ScmpActKillProcess => SeccompAction::KillProcess,
        LinuxSeccompAction::ScmpActTrap => SeccompAction::Trap,
        LinuxSeccompAction::ScmpActErrno => SeccompAction::Errno(errno.unwrap_or(EPERM)),
        LinuxSeccompAction::ScmpActTrace => SeccompAction::Trace(errno.unwrap_or(EPERM)),
        LinuxSeccompAction::ScmpActLog => SeccompAction::Log,
        LinuxSeccompAction::ScmpActAllow => SeccompAction::Allow,
        LinuxSeccompAction::ScmpActNotify => {
            return Err(unsupported("SCMP_ACT_NOTIFY needs a listener, which there is none of"));
        }
    })
}

fn check_whole(profile: &LinuxSeccomp) -> Result<(), SeccompError> {
    if profile.flags().as_ref().is_some_and(|flags| !flags.is_empty()) {
        return Err(unsupported("it has flags; remove them"));
    }
    if profile.listener_path().is_some() {
        return Err(unsupported("it has a listenerPath"));
    }
    let own =
        if cfg!(target_arch = "x86_64") { Arch::ScmpArchX86_64 } else { Arch::ScmpArchAarch64 };
    let is_own = |arch: &Arch| *arch == own || *arch == Arch::ScmpArchNative;
    match profile.architectures() {
        Some(all) if !all.is_empty() && !all.iter().any(is_own) => {
            Err(unsupported("its architectures leave out this machine's"))
        }
        _ => Ok(()),
    }
}

fn unsupported(what: &str) -> SeccompError {
    SeccompError::Unsupported(what.to_owned())
}

fn target() -> Result<TargetArch, SeccompError> {
    Ok(TargetArch::try_from(std::env::consts::ARCH)?)
}
