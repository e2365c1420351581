//! The files under packaging/: the program accepts the flags of the units, and the documentation shows the files as they are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarsman_kubelet_config::flags;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn unit(name: &str) -> String {
    fs::read_to_string(root().join("packaging/systemd").join(name)).unwrap()
}

/// The value of a setting that stands once in a unit.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let values: Vec<&str> =
        unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect();
    assert_eq!(values.len(), 1, "{name}= stands {} times in:\n{unit}", values.len());
    values[0]
}

/// The arguments of a unit's ExecStart, as systemd splits them.
fn words(unit: &str) -> Vec<String> {
    let mut words = setting(unit, "ExecStart").split_whitespace();
    assert_eq!(words.next(), Some("/usr/local/bin/oarsman"));
    let words = words.filter(|word| !word.starts_with('$'));
    words.map(|word| word.replace("%i", "web")).collect()
}

/// Whether a command accepts these arguments.
type AcceptsArguments = fn(&[String]) -> bool;

/// Whether `oarsman run` or `oarsman cri` accepts these arguments: all are parsed before `--help`, the last one, is obeyed.
fn command_accepts(words: &[String]) -> bool {
    let program = env!("CARGO_BIN_EXE_oarsman");
    Command::new(program).args(words).arg("--help").output().unwrap().status.success()
}

fn kubelet_accepts(words: &[String]) -> bool {
    flags::parse(&words[1..]).is_ok()
}

#[test]
fn the_program_takes_the_flags_of_the_units() {
    let units: [(&str, AcceptsArguments); 3] = [
        ("oarsman.service", kubelet_accepts),
        ("oarsman-run@.service", command_accepts),
        ("oarsman-cri.service", command_accepts),
    ];
    for (name, takes) in units {
        let mut words = words(&unit(name));
        assert!(takes(&words), "{words:?}");
        words.insert(1, "--no-such-flag=1".to_owned());
        assert!(!takes(&words), "{name}: that it is taken proves nothing");
    }
}

#[test]
fn a_restart_of_the_unit_kills_only_its_process() {
    for name in ["oarsman.service", "oarsman-run@.service", "oarsman-cri.service"] {
        let unit = unit(name);
        assert_eq!(setting(&unit, "Type"), "notify");
        assert_eq!(setting(&unit, "KillMode"), "process");
        assert_eq!(setting(&unit, "Delegate"), "yes");
        assert_eq!(setting(&unit, "WantedBy"), "multi-user.target");
    }
    for name in ["oarsman.service", "oarsman-cri.service"] {
        let unit = unit(name);
        assert_eq!(setting(&unit, "Restart"), "always");
        assert_eq!(setting(&unit, "OOMScoreAdjust"), "-999");
        assert!(setting(&unit, "WatchdogSec").parse::<u32>().unwrap() >= 10);
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_documentation_shows_every_file_as_it_is() {
    let documentation = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let mut files = Vec::new();
    files_below(&root().join("packaging"), &mut files);
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display();
        assert!(
            documentation.contains(&format!("\n{text}```\n")),
            "docs/operating.md: {name} differs"
        );
        assert!(
            documentation.contains(&format!("`{name}`")),
            "docs/operating.md: {name} is not named"
        );
    }
}
