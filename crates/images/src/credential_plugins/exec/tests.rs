//! Real programs.

use tokio::time::timeout;

use super::*;

/// The machine's shell as a program that knows credentials.
fn shell(script: &str) -> CredentialProvider {
    CredentialProvider {
        name: "sh".to_owned(),
        match_images: vec!["reg.io".to_owned()],
        default_cache: Duration::ZERO,
        api_version: "credentialprovider.kubelet.k8s.io/v1".to_owned(),
        args: ["-c", script, "sh", "one two"].map(str::to_owned).to_vec(),
        env: vec![("REGION".to_owned(), "eu".to_owned())],
        token_attributes: None,
    }
}

async fn answer(script: &str) -> Result<String, String> {
    let answer = exec(Path::new("/bin"), &shell(script), "the question").await;
    answer.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.why)
}

#[tokio::test]
async fn a_plugin_gets_the_request_its_arguments_and_variables() {
    let said = answer(r#"echo "$1, $REGION, $(cat)""#).await.unwrap();
    assert_eq!(said, "one two, eu, the question\n");
    assert_eq!(answer("echo unasked").await.unwrap(), "unasked\n");
}

#[tokio::test]
async fn a_plugin_that_fails_or_writes_too_much_is_an_error_with_its_reason() {
    let failed = answer("echo no such role >&2; exit 3").await.unwrap_err();
    assert_eq!(failed, "exit status: 3: no such role");
    let endless = answer("yes").await.unwrap_err();
    assert_eq!(endless, "its answer is longer than 1048576 bytes");
    let missing = exec(Path::new("/nowhere"), &shell(""), "").await.unwrap_err();
    assert_eq!(missing.doing, "start");
}

/// Row H17 of docs/security.md.
#[tokio::test]
async fn a_plugin_that_logs_much_is_heard_to_its_end() {
    let said = answer("head -c 1000000 /dev/zero >&2; echo answer").await.unwrap();
    assert_eq!(said, "answer\n");
}

#[tokio::test]
async fn a_plugin_that_does_not_answer_ends_with_the_programs_it_started() {
    let file = std::env::temp_dir().join(format!("oarsman-plugin-{}", std::process::id()));
    let script = format!("sleep 600 & echo $! > {}; wait", file.display());
    let soon = Duration::from_millis(500);
    let ended = exec_within(soon, Path::new("/bin"), &shell(&script), "").await;
    assert!(ended.is_err());
    let pid = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    let is_gone = || state().is_err() || state().is_ok_and(|stat| stat.contains(") Z "));
    let gone = async {
        while !is_gone() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.unwrap();
}
