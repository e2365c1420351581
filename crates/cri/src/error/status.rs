//! Converts our errors to gRPC statuses and back.

use std::error::Error;

use tonic::Status;

use super::{CriError, ErrorCode};

impl CriError {
    /// What a gRPC status means as the outcome of a call.
    ///
    /// A status with a source never came from the runtime: our own side made it, because the
    /// connection failed. gRPC scatters such failures over several codes; here they are one.
    pub(crate) fn from_status(call: &'static str, subject: &str, status: &Status) -> Self {
        let error = match status.source() {
            Some(_) => Self::new(call, ErrorCode::Unavailable, cause_chain(status)),
            None => Self::new(call, code_of(status.code()), status.message()),
        };
        error.on(subject)
    }

    /// The status that carries this error to a gRPC client. Call and subject are left out: the client knows what it asked for.
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
fn cause_chain(status: &Status) -> String {
    let words: Vec<String> = causes(status).map(ToString::to_string).collect();
    words.join(": ")
}

fn code_of(code: tonic::Code) -> ErrorCode {
    match code {
        tonic::Code::Cancelled => ErrorCode::Cancelled,
        tonic::Code::InvalidArgument => ErrorCode::InvalidArgument,
        tonic::Code::DeadlineExceeded => ErrorCode::DeadlineExceeded,
        tonic::Code::NotFound => ErrorCode::NotFound,
        tonic::Code::AlreadyExists => ErrorCode::AlreadyExists,
        tonic::Code::PermissionDenied => ErrorCode::PermissionDenied,
        tonic::Code::ResourceExhausted => ErrorCode::ResourceExhausted,
        tonic::Code::FailedPrecondition => ErrorCode::FailedPrecondition,
        tonic::Code::Aborted => ErrorCode::Aborted,
        tonic::Code::OutOfRange => ErrorCode::OutOfRange,
        tonic::Code::Unimplemented => ErrorCode::Unimplemented,
        tonic::Code::Internal => ErrorCode::Internal,
        tonic::Code::Unavailable => ErrorCode::Unavailable,
        tonic::Code::Unauthenticated => ErrorCode::Unauthenticated,
        tonic::Code::Ok | tonic::Code::Unknown | tonic::Code::DataLoss => ErrorCode::Unknown,
    }
}

fn grpc_code_of(code: ErrorCode) -> tonic::Code {
    tonic::Code::from_i32(code as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [ErrorCode; 15] = [
        ErrorCode::Cancelled,
        ErrorCode::Unknown,
        ErrorCode::InvalidArgument,
        ErrorCode::DeadlineExceeded,
        ErrorCode::NotFound,
        ErrorCode::AlreadyExists,
        ErrorCode::PermissionDenied,
        ErrorCode::ResourceExhausted,
        ErrorCode::FailedPrecondition,
        ErrorCode::Aborted,
        ErrorCode::OutOfRange,
        ErrorCode::Unimplemented,
        ErrorCode::Internal,
        ErrorCode::Unavailable,
        ErrorCode::Unauthenticated,
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
    fn the_message_names_the_call_the_subject_and_the_code() {
        let error = CriError::not_found("ContainerStatus", "c1");
        let said = "ContainerStatus c1: c1 does not exist (not found)";
        assert_eq!(error.to_string(), said);
        assert!(error.is_gone());
    }
}
