//! The network: the `Network` seam to servers and pods over HTTP, TCP and gRPC, and the machine's own network behind it. A CNI client and a bridge
//! of our own for machines without one will stand beside it.

mod network;
mod system;

pub use network::{
    GrpcCheck, GrpcResponse, HttpGet, HttpResponse, Network, NetworkError, NetworkLayer, Scheme,
    TcpConnect, Trust,
};
pub use system::{SystemNetwork, TlsOptions, addresses, tls_config};
