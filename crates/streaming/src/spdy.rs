//! SPDY/3.1 frames as spdystream, the library of Kubernetes and of the runtimes, uses them.
//!
//! That library neither sends nor respects flow control windows: the transport's own flow control is the only one. It drops data that
//! comes before it has replied to a stream.

mod decoder;
mod dictionary;
mod encoder;
mod header_block;
#[cfg(test)]
mod tests;

pub use decoder::SpdyDecoder;
pub use encoder::SpdyEncoder;
pub(crate) use encoder::data as push_data;

/// Names in lower case with their values, in order.
pub type SpdyHeaders = Vec<(String, String)>;

/// The status code of a reset by which a side ends a stream that it does not need any more.
pub const RST_CANCEL: u32 = 5;

/// The largest payload of a DATA frame that is sent.
pub const MAX_DATA_BYTES: usize = 32 * 1024;

const VERSION: u16 = 3;
const FLAG_FIN: u8 = 1;
const FLAG_UNIDIRECTIONAL: u8 = 2;
/// Stream ids have 31 bits.
const STREAM_ID_MASK: u32 = 0x7fff_ffff;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpdyFrame {
    /// Opens a stream.
    SynStream {
        /// Its id: odd ones are the client's.
        stream: u32,
        /// Whether its sender sends no data.
        fin: bool,
        /// What the stream is for.
        headers: SpdyHeaders,
    },
    /// Accepts a stream.
    SynReply {
        /// Its id.
        stream: u32,
        /// Whether its sender sends no data.
        fin: bool,
        /// Mostly none.
        headers: SpdyHeaders,
    },
    /// Ends a stream in both directions.
    RstStream {
        /// Its id.
        stream: u32,
        /// Why.
        status: u32,
    },
    /// Settings of the connection: identifiers and values.
    Settings(Vec<(u32, u32)>),
    /// Asks whether the other end is there, or answers.
    Ping(u32),
    /// The sender takes no further streams.
    GoAway {
        /// The last stream that it took.
        last_stream: u32,
        /// Why.
        status: u32,
    },
    /// More headers of a stream.
    Headers {
        /// Its id.
        stream: u32,
        /// Whether its sender sends no more.
        fin: bool,
        /// The headers.
        headers: SpdyHeaders,
    },
    /// The receiver takes so many bytes more.
    WindowUpdate {
        /// The stream, or zero for the connection.
        stream: u32,
        /// The number of bytes.
        delta: u32,
    },
    /// Bytes of a stream. A long frame is decoded in pieces.
    Data {
        /// The stream's id.
        stream: u32,
        /// Whether its sender sends no more.
        fin: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
}
