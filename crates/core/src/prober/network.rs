//! TCP connections and gRPC health checks.

use super::outcome::ProbeOutcome;

/// What a server answered to `grpc.health.v1.Health/Check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthAnswer {
    /// The number of a `ServingStatus`.
    Status(i32),
    /// The call failed.
    Refused {
        /// Whether the server does not have that service at all.
        is_unimplemented: bool,
        /// The server's message, with its code.
        message: String,
    },
}

/// The one status that counts as a success.
const SERVING: i32 = 1;

/// A connection was made, and closed again.
pub fn connected() -> ProbeOutcome {
    ProbeOutcome::success("")
}

/// No answer came: refused, unreachable, too late, no such name.
pub fn no_answer(why: &str) -> ProbeOutcome {
    ProbeOutcome::failure(why)
}

/// What a gRPC server says of a service.
pub fn judge_health(answer: &HealthAnswer) -> ProbeOutcome {
    match answer {
        HealthAnswer::Status(SERVING) => ProbeOutcome::success("service healthy"),
        HealthAnswer::Status(status) => {
            let status = status_name(*status);
            ProbeOutcome::failure(format!("service unhealthy (responded with {status:?})"))
        }
        HealthAnswer::Refused { is_unimplemented: true, message } => {
            ProbeOutcome::failure(format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
            ))
        }
        HealthAnswer::Refused { is_unimplemented: false, message } => {
            ProbeOutcome::failure(format!("error: health rpc probe failed: {message}"))
        }
    }
}

fn status_name(status: i32) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        SERVING => "SERVING".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_serving_is_healthy() {
        let refused = |is_unimplemented, message: &str| HealthAnswer::Refused {
            is_unimplemented,
            message: message.to_owned(),
        };
        let rows = [
            (HealthAnswer::Status(1), true, "service healthy"),
            (HealthAnswer::Status(0), false, "service unhealthy (responded with \"UNKNOWN\")"),
            (HealthAnswer::Status(2), false, "service unhealthy (responded with \"NOT_SERVING\")"),
            (
                HealthAnswer::Status(3),
                false,
                "service unhealthy (responded with \"SERVICE_UNKNOWN\")",
            ),
            (HealthAnswer::Status(9), false, "service unhealthy (responded with \"9\")"),
            (
                refused(true, "no"),
                false,
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no",
            ),
            (refused(false, "no"), false, "error: health rpc probe failed: no"),
        ];
        for (answer, is_healthy, output) in rows {
            let outcome = judge_health(&answer);
            assert_eq!(matches!(outcome, ProbeOutcome::Success { .. }), is_healthy, "{answer:?}");
            assert_eq!(outcome.output(), output);
        }
    }

    #[test]
    fn a_connection_is_a_success_and_none_is_a_failure() {
        assert_eq!(connected(), ProbeOutcome::success(""));
        assert_eq!(no_answer("refused"), ProbeOutcome::failure("refused"));
    }
}
