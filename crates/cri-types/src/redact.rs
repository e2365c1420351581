//! `Debug` for messages that carry secrets, so that no log line can ever show them.

use std::fmt;

use crate::v1::AuthConfig;

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig")
            .field("username", &self.username)
            .field("password", &Redacted(&self.password))
            .field("auth", &Redacted(&self.auth))
            .field("server_address", &self.server_address)
            .field("identity_token", &Redacted(&self.identity_token))
            .field("registry_token", &Redacted(&self.registry_token))
            .finish()
    }
}

/// Shows only whether there is a secret.
struct Redacted<'a>(&'a str);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "hidden" })
    }
}

#[cfg(test)]
mod tests {
    use crate::v1::{AuthConfig, PullImageRequest};

    #[test]
    fn a_printed_pull_request_hides_every_secret() {
        let request = PullImageRequest {
            auth: Some(AuthConfig {
                username: "user-to-see".to_owned(),
                password: "s3cret-1".to_owned(),
                auth: "s3cret-2".to_owned(),
                server_address: "registry.test".to_owned(),
                identity_token: "s3cret-3".to_owned(),
                registry_token: "s3cret-4".to_owned(),
            }),
            ..PullImageRequest::default()
        };
        let printed = format!("{request:?}");
        assert!(!printed.contains("s3cret"), "{printed}");
        assert!(printed.contains("user-to-see"), "{printed}");
        assert!(printed.contains("registry.test"), "{printed}");
    }
}
