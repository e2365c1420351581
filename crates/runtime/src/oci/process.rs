//! What is executed: arguments, environment and working directory, from the image and the container's configuration.

use oarsman_cri_types::v1::{ContainerConfig, KeyValue};
use oarsman_image_store::ImageRunConfig;

use super::SpecError;

const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program and its arguments. A command replaces both parts of the image, arguments alone only its second one.
pub(crate) fn arguments(
    config: &ContainerConfig,
    image: &ImageRunConfig,
) -> Result<Vec<String>, SpecError> {
    let all = match (config.command.is_empty(), config.args.is_empty()) {
        (true, true) => [image.entrypoint.as_slice(), &image.cmd].concat(),
        (true, false) => [image.entrypoint.as_slice(), &config.args].concat(),
        (false, _) => [config.command.as_slice(), &config.args].concat(),
    };
    if all.is_empty() { Err(SpecError::NoCommand) } else { Ok(all) }
}

/// The environment; a later variable replaces an earlier one of its name.
pub(crate) fn environment(
    config: &ContainerConfig,
    image: &ImageRunConfig,
    hostname: &str,
) -> Result<Vec<String>, SpecError> {
    let mut all = vec![DEFAULT_PATH.to_owned()];
    if config.tty {
        all.push("TERM=xterm".to_owned());
    }
    if !hostname.is_empty() {
        all.push(format!("HOSTNAME={hostname}"));
    }
    let own = config.envs.iter().map(variable).collect::<Result<Vec<_>, _>>()?;
    for entry in image.env.iter().cloned().chain(own) {
        match all.iter_mut().find(|known| name(known) == name(&entry)) {
            Some(known) => *known = entry,
            None => all.push(entry),
        }
    }
    Ok(all)
}

fn variable(variable: &KeyValue) -> Result<String, SpecError> {
    let value = std::str::from_utf8(&variable.value)
        .map_err(|_| SpecError::Environment { name: variable.key.clone() })?;
    Ok(format!("{}={value}", variable.key))
}

fn name(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(name, _)| name)
}

/// Where the program starts.
pub(crate) fn working_directory(config: &ContainerConfig, image: &ImageRunConfig) -> String {
    let wanted = [&config.working_dir, &image.working_dir];
    wanted.into_iter().find(|path| !path.is_empty()).map_or("/", String::as_str).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_replaces_the_entrypoint_and_arguments_replace_the_cmd() {
        let rows = [
            ("e", "c", "", "", Some("e c")),
            ("e", "c", "", "a", Some("e a")),
            ("e", "c", "x", "", Some("x")),
            ("e", "c", "x", "a b", Some("x a b")),
            ("", "c", "", "", Some("c")),
            ("", "c", "", "a", Some("a")),
            ("", "", "", "", None),
        ];
        for (entrypoint, cmd, command, args, wanted) in rows {
            let image = ImageRunConfig {
                entrypoint: words(entrypoint),
                cmd: words(cmd),
                ..ImageRunConfig::default()
            };
            let config = ContainerConfig {
                command: words(command),
                args: words(args),
                ..ContainerConfig::default()
            };
            assert_eq!(arguments(&config, &image).ok(), wanted.map(words), "{command:?} {args:?}");
        }
    }

    #[test]
    fn the_containers_variables_win_over_the_images() {
        let image = ImageRunConfig {
            env: vec!["PATH=/bin".to_owned(), "A=1".to_owned()],
            ..ImageRunConfig::default()
        };
        let value = |value: &[u8]| KeyValue { key: "A".to_owned(), value: value.to_vec() };
        let mut config = ContainerConfig { envs: vec![value(b"2=3")], ..Default::default() };
        let found = environment(&config, &image, "web").unwrap();
        assert_eq!(found, ["PATH=/bin", "HOSTNAME=web", "A=2=3"]);
        config.tty = true;
        assert!(environment(&config, &image, "").unwrap().contains(&"TERM=xterm".to_owned()));
        config.envs = vec![value(&[0xff])];
        assert!(environment(&config, &image, "").is_err());
    }

    #[test]
    fn the_working_directory_is_the_containers_then_the_images() {
        let rows = [("", "", "/"), ("", "/i", "/i"), ("/c", "/i", "/c")];
        for (own, of_image, wanted) in rows {
            let image =
                ImageRunConfig { working_dir: of_image.to_owned(), ..ImageRunConfig::default() };
            let config =
                ContainerConfig { working_dir: own.to_owned(), ..ContainerConfig::default() };
            assert_eq!(working_directory(&config, &image), wanted);
        }
    }
}
