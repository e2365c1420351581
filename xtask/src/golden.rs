//! `cargo xtask golden`: sends every manifest in `testing/pods` to a real kube-apiserver and stores its responses, so that our defaulting and
//! validation can be compared with them.
//!
//! The server runs with etcd in a network namespace of its own and only gets requests with `dryRun=All`. Its admission plugins are off: what
//! they change or refuse is policy of a cluster, not of the API.

mod answer;
mod processes;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use oarsman_rig::parts::kubernetes;

use server::GoldenApiServer;

/// Sends the manifests whose names contain one of `only`, or all of them.
pub(crate) fn run(root: &Path, only: &[String]) -> Result<()> {
    let pods = root.join("testing/pods");
    let manifests = find_manifests(&pods, only)?;
    let server = GoldenApiServer::start(&kubernetes::API_SERVER.build()?)?;
    let answers = pods.join("golden");
    fs::create_dir_all(&answers).with_context(|| format!("making {}", answers.display()))?;
    for manifest in &manifests {
        write_answer(&server, manifest, &answers)?;
    }
    server.stop()?;
    if only.is_empty() {
        remove_answers_without_manifest(&manifests, &answers)?;
    }
    println!("golden: {} answers in {}", manifests.len(), answers.display());
    Ok(())
}

fn find_manifests(pods: &Path, only: &[String]) -> Result<Vec<PathBuf>> {
    let wanted = |path: &PathBuf| {
        only.is_empty() || only.iter().any(|part| stem(path).contains(part.as_str()))
    };
    let mut found: Vec<PathBuf> = files_of_kind(pods, "yaml")?.into_iter().filter(wanted).collect();
    found.sort();
    if found.is_empty() {
        bail!("no manifest in {} matches {only:?}", pods.display());
    }
    Ok(found)
}

fn write_answer(server: &GoldenApiServer, manifest: &Path, answers: &Path) -> Result<()> {
    let said = server
        .create_dry(manifest)
        .with_context(|| format!("asking about {}", manifest.display()))?;
    let answer = answer::to_golden(&said).with_context(|| format!("for {}", manifest.display()))?;
    println!("{:<60} {}", stem(manifest), answer.summary);
    let path = answers.join(format!("{}.json", stem(manifest)));
    fs::write(&path, answer.text).with_context(|| format!("writing {}", path.display()))
}

fn remove_answers_without_manifest(manifests: &[PathBuf], answers: &Path) -> Result<()> {
    for answer in files_of_kind(answers, "json")? {
        if !manifests.iter().any(|manifest| stem(manifest) == stem(&answer)) {
            fs::remove_file(&answer).with_context(|| format!("removing {}", answer.display()))?;
        }
    }
    Ok(())
}

fn files_of_kind(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in
        fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
