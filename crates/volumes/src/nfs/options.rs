//! The mount options of nfs volumes. An administrator writes them as text; nothing of it gets to mount(2) but words that are known.

use std::fmt::Write as _;
use std::net::IpAddr;

use rustix::mount::MountFlags;

/// The versions of the protocol that are tried, newest first.
const VERSIONS: [&str; 4] = ["4.2", "4.1", "4.0", "3"];
/// Options of the mount, not of the file system.
const FLAGS: [(&str, MountFlags); 8] = [
    ("dirsync", MountFlags::DIRSYNC),
    ("noatime", MountFlags::NOATIME),
    ("nodev", MountFlags::NODEV),
    ("nodiratime", MountFlags::NODIRATIME),
    ("noexec", MountFlags::NOEXEC),
    ("nosuid", MountFlags::NOSUID),
    ("relatime", MountFlags::RELATIME),
    ("sync", MountFlags::SYNCHRONOUS),
];
/// What is so anyway, or is about the program that mounts.
const WITHOUT_EFFECT: [&str; 12] = [
    "", "_netdev", "async", "atime", "defaults", "dev", "diratime", "exec", "fg", "intr", "nointr",
    "suid",
];
/// Words that the file system knows.
const WORDS: [&str; 25] = [
    "ac",
    "acl",
    "cto",
    "fsc",
    "hard",
    "lock",
    "migration",
    "noac",
    "noacl",
    "nocto",
    "nofsc",
    "nolock",
    "nomigration",
    "nordirplus",
    "noresvport",
    "nosharecache",
    "posix",
    "rdirplus",
    "rdma",
    "resvport",
    "sharecache",
    "soft",
    "softerr",
    "tcp",
    "udp",
];
/// Words with a number.
const NUMBERS: [&str; 15] = [
    "acdirmax",
    "acdirmin",
    "acregmax",
    "acregmin",
    "actimeo",
    "max_connect",
    "mountport",
    "mountvers",
    "namlen",
    "nconnect",
    "port",
    "retrans",
    "rsize",
    "timeo",
    "wsize",
];
/// Words with one of these values.
const CHOICES: [(&str, &[&str]); 7] = [
    ("local_lock", &["all", "flock", "none", "posix"]),
    ("lookupcache", &["all", "none", "pos", "positive"]),
    ("mountproto", &["tcp", "tcp6", "udp", "udp6"]),
    ("proto", &["rdma", "rdma6", "tcp", "tcp6", "udp", "udp6"]),
    ("sec", &["krb5", "krb5i", "krb5p", "none", "sys"]),
    ("write", &["eager", "lazy", "wait"]),
    ("xprtsec", &["mtls", "none", "tls"]),
];

/// Options that were understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NfsOptions {
    pub(super) read_only: bool,
    flags: Vec<&'static str>,
    /// What the file system understands.
    words: Vec<String>,
    version: Option<&'static str>,
}

impl NfsOptions {
    /// Fails with the first one that is not known. One string may hold several.
    pub(super) fn parse(texts: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        for text in texts.iter().flat_map(|text| text.split(',')) {
            options.take(text.trim()).ok_or_else(|| text.to_owned())?;
        }
        Ok(options)
    }

    fn take(&mut self, option: &str) -> Option<()> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match option {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            option if WITHOUT_EFFECT.contains(&option) => {}
            option if WORDS.contains(&option) => self.words.push(option.to_owned()),
            _ if value.is_empty() => {
                let (flag, _) = FLAGS.iter().find(|(flag, _)| *flag == option)?;
                self.flags.push(flag);
            }
            // How long the program that mounts would try: the pod is tried again anyway.
            _ if name == "retry" => drop(value.parse::<u32>().ok()?),
            _ if matches!(name, "vers" | "nfsvers") => self.version = Some(version(value)?),
            _ => self.words.push(valued(name, value)?),
        }
        Some(())
    }

    /// The versions of the protocol to try, in this order.
    pub(super) fn versions(&self) -> Vec<&'static str> {
        self.version.map_or_else(|| VERSIONS.to_vec(), |version| vec![version])
    }

    /// Those of the mount.
    pub(super) fn flags(&self) -> MountFlags {
        let named = FLAGS.iter().filter(|(flag, _)| self.flags.contains(flag));
        let flags = named.fold(MountFlags::empty(), |flags, (_, flag)| flags | *flag);
        if self.read_only { flags | MountFlags::RDONLY } else { flags }
    }

    /// Those of the file system, which does not resolve names.
    pub(super) fn data(&self, version: &str, address: IpAddr) -> String {
        let mut data = format!("vers={version},addr={address}");
        for word in &self.words {
            // Writing to a string cannot fail.
            write!(data, ",{word}").ok();
        }
        data
    }
}

fn version(text: &str) -> Option<&'static str> {
    match text {
        "4" => Some("4"),
        text => VERSIONS.into_iter().find(|version| *version == text),
    }
}

fn valued(name: &str, value: &str) -> Option<String> {
    let is_number = NUMBERS.contains(&name) && value.parse::<u32>().is_ok();
    let mut choices = CHOICES.iter();
    let is_choice = choices.any(|(word, values)| *word == name && values.contains(&value));
    (is_number || is_choice).then(|| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<NfsOptions, String> {
        NfsOptions::parse(&options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_that_are_known_reach_the_kernel_each_in_its_place() {
        let address = IpAddr::from([192, 0, 2, 7]);
        let rows: [(&[&str], &str, MountFlags, usize); 6] = [
            (&[], "vers=4.2,addr=192.0.2.7", MountFlags::empty(), 4),
            (&["ro"], "vers=4.2,addr=192.0.2.7", MountFlags::RDONLY, 4),
            (&["ro", "rw"], "vers=4.2,addr=192.0.2.7", MountFlags::empty(), 4),
            (&["vers=3", "nolock"], "vers=3,addr=192.0.2.7,nolock", MountFlags::empty(), 1),
            (
                &["nfsvers=4.1", "hard,timeo=600", "noatime", "retry=5", "_netdev"],
                "vers=4.1,addr=192.0.2.7,hard,timeo=600",
                MountFlags::NOATIME,
                1,
            ),
            (
                &["sec=krb5p", "proto=tcp6", "nosuid", "nodev"],
                "vers=4.2,addr=192.0.2.7,sec=krb5p,proto=tcp6",
                MountFlags::NOSUID.union(MountFlags::NODEV),
                4,
            ),
        ];
        for (texts, data, flags, tries) in rows {
            let options = parse(texts).unwrap();
            let versions = options.versions();
            assert_eq!(versions.len(), tries, "{texts:?}");
            assert_eq!(options.data(versions[0], address), data);
            assert_eq!(options.flags(), flags, "{texts:?}");
        }
    }

    #[test]
    fn an_option_that_is_not_known_is_refused() {
        for bad in [
            "bind",
            "remount",
            "addr=192.0.2.1",
            "clientaddr=192.0.2.1",
            "timeo=long",
            "timeo=",
            "vers=5",
            "sec=anything",
            "hard=1",
            "context=system_u:object_r:x",
            "bg",
            "port=1 2",
            "mounthost=other",
            "source=/",
            "rsize=-1",
            "nosuid=no",
        ] {
            assert_eq!(parse(&["hard", bad]).unwrap_err(), bad);
        }
    }
}
