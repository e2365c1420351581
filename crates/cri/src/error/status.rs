//! The one way between our errors and gRPC's, in both directions.

use std::error::Error;

use tonic::Status;

use super::{Code, CriError};

impl CriError {
    /// What a gRPC status means as the outcome of a call.
    ///
    /// A status with a source never came from the runtime: our own side made it, because the
    /// connection failed. gRPC scatters such failures over several codes; here they are one.
    pub(crate) fn from_status(call: &'static str, subject: &str, status: &Status) -> Self {
        let error = match status.source() {
            Some(_) => Self::new(call, Code::Unavailable, told(status)),
            None => Self::new(call, code_of(status.code()), status.message()),
        };
        error.on(subject)
    }

    /// The status that tells this error to a gRPC client. Call and subject stay behind: the client
    /// knows what it asked for.
    pub(crate) fn to_status(&self) -> Status {
        Status::new(grpc_code_of(self.code), &self.message)
    }
}

/// What made our own side give this status, from the outermost cause to the root; nothing when
/// the runtime gave it.
pub(crate) fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&cause| cause.source())
}

/// All causes in one line.
fn told(status: &Status) -> String {
    let words: Vec<String> = causes(status).map(ToString::to_string).collect();
    words.join(": ")
}

fn code_of(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Cancelled => Code::Cancelled,
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::Unavailable => Code::Unavailable,
        tonic::Code::Unauthenticated => Code::Unauthenticated,
        tonic::Code::Ok | tonic::Code::Unknown | tonic::Code::DataLoss => Code::Unknown,
    }
}

fn grpc_code_of(code: Code) -> tonic::Code {
    tonic::Code::from_i32(code as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [Code; 15] = [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::Unauthenticated,
    ];

    #[test]
    fn an_error_survives_the_way_over_the_wire() {
        for code in CODES {
            let error = CriError::new("StopContainer", code, "so it is").on("c1");
            let back = CriError::from_status("StopContainer", "c1", &error.to_status());
            assert_eq!(back, error);
        }
    }

    #[test]
    fn our_names_of_the_codes_are_grpcs() {
        for code in CODES {
            let ours = code.to_string().replace(' ', "");
            let theirs = format!("{:?}", grpc_code_of(code)).to_lowercase();
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn a_failed_connection_is_unavailable_whatever_grpc_calls_it() {
        let broken = std::io::Error::other("broken pipe");
        let status = Status::from_error(Box::new(broken));
        assert_eq!(status.code(), tonic::Code::Unknown);
        let error = CriError::from_status("Version", "", &status);
        assert!(error.is_unavailable(), "{error}");
        assert_eq!(error.to_string(), "Version: broken pipe (unavailable)");
    }

    #[test]
    fn what_is_said_names_the_call_the_subject_and_the_code() {
        let error = CriError::not_found("ContainerStatus", "c1");
        let said = "ContainerStatus c1: c1 does not exist (not found)";
        assert_eq!(error.to_string(), said);
        assert!(error.is_gone());
    }
}
