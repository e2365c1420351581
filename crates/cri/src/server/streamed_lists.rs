//! Lists in pieces, none of which is larger than a message may be.

use futures::{StreamExt, stream};
use prost::Message;
use tonic::codegen::BoxStream;

/// The size in bytes from which on a piece takes no further entry.
const PIECE: usize = 1 << 20;

/// The entries of a list in order, as messages that `message` makes. An empty list has no message.
pub(super) fn in_pieces<T, M>(list: Vec<T>, message: fn(Vec<T>) -> M) -> BoxStream<M>
where
    T: Message,
    M: Send + 'static,
{
    let messages: Vec<_> = pieces(list).into_iter().map(|piece| Ok(message(piece))).collect();
    stream::iter(messages).boxed()
}

fn pieces<T: Message>(list: Vec<T>) -> Vec<Vec<T>> {
    let mut pieces: Vec<Vec<T>> = Vec::new();
    let mut room = 0_usize;
    for entry in list {
        let size = entry.encoded_len();
        match pieces.last_mut().filter(|_| size <= room) {
            Some(piece) => piece.push(entry),
            None => {
                room = PIECE;
                pieces.push(vec![entry]);
            }
        }
        room = room.saturating_sub(size);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of these sizes.
    fn list(sizes: &[usize]) -> Vec<Vec<u8>> {
        sizes.iter().map(|size| vec![0; *size]).collect()
    }

    fn lengths(sizes: &[usize]) -> Vec<usize> {
        pieces(list(sizes)).iter().map(Vec::len).collect()
    }

    #[test]
    fn every_entry_is_in_one_piece_and_a_large_one_in_a_piece_of_its_own() {
        let half = PIECE / 2 - 100;
        let rows: [(&[usize], &[usize]); 6] = [
            (&[], &[]),
            (&[1, 1, 1], &[3]),
            (&[half, half, half], &[2, 1]),
            (&[3 * PIECE, 1], &[1, 1]),
            (&[1, 3 * PIECE], &[1, 1]),
            (&[half, 3 * PIECE, half, half], &[1, 1, 2]),
        ];
        for (sizes, expected) in rows {
            assert_eq!(lengths(sizes), expected, "{sizes:?}");
        }
    }
}
