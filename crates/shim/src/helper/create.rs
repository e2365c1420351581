//! Makes containers and further processes in them, by libcontainer.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use oci_spec::runtime::{LinuxIdMapping, Process, Spec};
use rustix::process::{Pid, Signal, kill_process};

use super::container_root::ContainerRoot;
use super::executor::ProcessExecutor;
use super::user_namespace::ContainerUsers;
use super::{ExecStep, HelperError, devices, held_spec, identity};
use crate::directory::{ContainerDirectory, ShimDirectory};
use crate::file_io::{read_json, write_json};
use crate::protocol::CreateRequest;
use crate::seccomp::{self, SeccompFilters};

pub(super) fn create(
    shim: &ShimDirectory,
    directory: &ContainerDirectory,
    id: &str,
) -> Result<u32, HelperError> {
    let request = read_request(directory)?;
    let process = process_of(&request.spec)?;
    let filters = filters_of(&request.spec)?;
    give_pipes(&request.spec, process)?;
    let mut executor = ProcessExecutor::new(process.clone(), filters);
    let mut spec = request.spec.clone();
    let mut users = ContainerUsers::take(&mut spec)?;
    executor.root = Some(Rc::new(ContainerRoot::take(&mut spec, &mut users)?));
    held_spec::adapt(&mut spec)?;
    let root = users.make_reachable(&mut spec, shim)?;
    let bundle = directory.bundle();
    std::fs::create_dir_all(&bundle).map_err(HelperError::io("cannot make the bundle"))?;
    write_bundle(&bundle, &spec)?;
    let console =
        (process.terminal() == Some(true)).then(|| directory.path().join("create.console"));
    let container = builder(shim, id)?.with_executor(executor).with_console_socket(console);
    let container = container.as_init(&bundle).with_systemd(false).with_detach(true).build()?;
    let pid = pid_of(container.pid().map(|pid| pid.as_raw()))?;
    control_devices(&request.spec, pid)?;
    if let (Some(root), Some(known)) = (root, spec.root_mut()) {
        // An exec looks for it on the host.
        known.set_path(root);
        write_bundle(&bundle, &spec)?;
    }
    Ok(pid)
}

/// Its process waits to be started, and does not outlive a failure.
fn control_devices(spec: &Spec, pid: u32) -> Result<(), HelperError> {
    let controlled = devices::control(spec, pid);
    if controlled.is_err()
        && let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
    {
        // It is our child, so that its number is still its own.
        kill_process(pid, Signal::KILL).unwrap_or_default();
    }
    controlled
}

pub(super) fn write_bundle(bundle: &Path, spec: &Spec) -> Result<(), HelperError> {
    write_json(&bundle.join("config.json"), spec)
        .map_err(HelperError::io("cannot write the bundle"))
}

pub(super) fn exec(
    shim: &ShimDirectory,
    directory: &ContainerDirectory,
    id: &str,
    name: &str,
) -> Result<u32, HelperError> {
    let request = read_request(directory)?;
    let step: Option<ExecStep> = read_json(&directory.of_step(name, "process"))
        .map_err(HelperError::io("cannot read the process"))?;
    let ExecStep { mut process, group } =
        step.ok_or_else(|| HelperError::Invalid("there is no process".into()))?;
    let mut executor = ProcessExecutor::new(process.clone(), filters_of(&request.spec)?);
    give_pipes(&request.spec, &process)?;
    executor.user_namespace = other_user_namespace(shim, id)?;
    executor.group = group.as_deref().map(open_group).transpose()?;
    let console = (process.terminal() == Some(true))
        .then(|| directory.path().join(format!("{name}.console")));
    held_spec::adapt_process(&mut process)?;
    let file = directory.of_step(name, "bundle");
    write_json(&file, &process).map_err(HelperError::io("cannot write the process"))?;
    let tenant = builder(shim, id)?.with_executor(executor).with_console_socket(console);
    let pid = tenant.as_tenant().with_detach(true).with_process(Some(file)).build()?;
    pid_of(Some(pid.as_raw()))
}

fn builder(shim: &ShimDirectory, id: &str) -> Result<ContainerBuilder, HelperError> {
    let root = shim.libcontainer();
    Ok(ContainerBuilder::new(id.to_owned(), SyscallType::default())
        .with_root_path(root)?
        .validate_id()?)
}

pub(super) fn read_request(directory: &ContainerDirectory) -> Result<CreateRequest, HelperError> {
    let request =
        read_json(&directory.request()).map_err(HelperError::io("cannot read the request"))?;
    request.ok_or_else(|| HelperError::Invalid("there is no request".into()))
}

fn process_of(spec: &Spec) -> Result<&Process, HelperError> {
    spec.process().as_ref().ok_or_else(|| HelperError::Invalid("the spec has no process".into()))
}

/// With a user namespace the pipes have to be given away before, by the mapping.
fn give_pipes(spec: &Spec, process: &Process) -> Result<(), HelperError> {
    let mappings = spec.linux().as_ref().and_then(|linux| linux.uid_mappings().as_ref());
    let uid = process.user().uid();
    let place = |mapping: &LinuxIdMapping| {
        uid.checked_sub(mapping.container_id()).filter(|at| *at < mapping.size())
    };
    let outside = mappings
        .into_iter()
        .flatten()
        .find_map(|mapping| mapping.host_id().checked_add(place(mapping)?));
    let given = outside.map(identity::give_pipes).transpose();
    given.map(|_| ()).map_err(HelperError::io("cannot give the streams to the container's user"))
}

fn filters_of(spec: &Spec) -> Result<SeccompFilters, HelperError> {
    let profile = spec.linux().as_ref().and_then(|linux| linux.seccomp().as_ref());
    Ok(profile.map(seccomp::compile).transpose()?.unwrap_or_default())
}

/// libcontainer joins every namespace of a container but its user namespace; our executor does that as its last step as root.
fn other_user_namespace(shim: &ShimDirectory, id: &str) -> Result<Option<Rc<File>>, HelperError> {
    let container = Container::load(shim.libcontainer().join(id))?;
    let pid = pid_of(container.pid().map(|pid| pid.as_raw()))?;
    let failed = || HelperError::io("cannot read the container's user namespace");
    let name = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/user")).map_err(failed());
    if name(pid)? == name(std::process::id())? {
        return Ok(None);
    }
    let file = File::open(format!("/proc/{pid}/ns/user")).map_err(failed())?;
    Ok(Some(Rc::new(file)))
}

fn open_group(group: &Path) -> Result<Rc<File>, HelperError> {
    let file = File::options().write(true).open(group.join("cgroup.procs"));
    Ok(Rc::new(file.map_err(HelperError::io("cannot open the control group of the exec"))?))
}

fn pid_of(pid: Option<i32>) -> Result<u32, HelperError> {
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    pid.ok_or_else(|| HelperError::Invalid("libcontainer tells no process".into()))
}
