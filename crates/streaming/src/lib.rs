//! WebSocket and SPDY codecs for exec, attach and port-forward.
