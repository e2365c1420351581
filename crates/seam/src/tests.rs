//! A seam of two methods, and layers in front of it.

use std::sync::Mutex;

use super::*;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

impl SeamError for Failed {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self(format!("{call}: {fault}"))
    }
}

#[seam]
trait NoteStore: Send + Sync + 'static {
    /// Puts a thing there.
    #[seam(object = name)]
    async fn put_thing(&self, name: &str, bytes: Vec<u8>) -> Result<usize, Failed>;

    /// How many there are.
    #[seam(call = "the count")]
    async fn count(&self) -> Result<usize, Failed> {
        Ok(0)
    }

    fn label(&self) -> String;
}

/// The real one.
#[derive(Default)]
struct InMemoryNotes(Mutex<Vec<String>>);

#[async_trait]
impl NoteStore for InMemoryNotes {
    async fn put_thing(&self, name: &str, bytes: Vec<u8>) -> Result<usize, Failed> {
        self.0.lock().unwrap().push(name.to_owned());
        Ok(bytes.len())
    }

    fn label(&self) -> String {
        "board".to_owned()
    }
}

/// Writes calls down, and fails those on that object.
#[derive(Clone, Default)]
struct CallTrace(Arc<Mutex<Vec<String>>>);

impl Middleware for CallTrace {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        self.0.lock().unwrap().push(call.to_string());
        match call.object.as_str() {
            "bad" => Err(E::of_fault(&call, CallFault::Unavailable)),
            _ => answer.await,
        }
    }
}

/// Overrides one method, forwards the rest.
struct Counted(Arc<dyn NoteStore>);

#[async_trait]
impl NoteStoreLayer for Counted {
    type Middleware = NoMiddleware;

    fn inner(&self) -> &Arc<dyn NoteStore> {
        &self.0
    }

    fn middleware(&self) -> &NoMiddleware {
        &NoMiddleware
    }

    async fn count(&self) -> Result<usize, Failed> {
        Ok(7)
    }
}

#[tokio::test]
async fn every_call_goes_through_the_middleware_with_its_name_and_object() {
    let (board, trace) = (Arc::new(InMemoryNotes::default()), CallTrace::default());
    let shelf: Arc<dyn NoteStore> =
        Arc::new(WithMiddleware::new(Arc::clone(&board) as _, trace.clone()));
    assert_eq!(shelf.put_thing("good", vec![1, 2]).await, Ok(2));
    let failed = shelf.put_thing("bad", Vec::new()).await.unwrap_err();
    assert_eq!(failed, Failed("PutThing bad: the connection broke".to_owned()));
    assert_eq!(shelf.count().await, Ok(0));
    assert_eq!(shelf.label(), "board", "what does not wait is forwarded as it is");
    assert_eq!(*trace.0.lock().unwrap(), ["PutThing good", "PutThing bad", "the count"]);
    assert_eq!(*board.0.lock().unwrap(), ["good"]);
}

#[tokio::test]
async fn a_layer_forwards_what_it_does_not_write_itself() {
    let board = Arc::new(InMemoryNotes::default());
    let shelf: Arc<dyn NoteStore> = Arc::new(Counted(Arc::clone(&board) as _));
    assert_eq!(shelf.put_thing("a", vec![1]).await, Ok(1));
    assert_eq!((shelf.count().await, shelf.label().as_str()), (Ok(7), "board"));
    assert_eq!(*board.0.lock().unwrap(), ["a"]);
}
