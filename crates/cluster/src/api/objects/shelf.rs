//! The cache of objects of one kind, each kept up to date for as long as a pod refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_sync::Guarded;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::super::error::failed;
use super::super::jitter::Waits;
use super::super::watch::{self as watching, Manner, Watch};
use super::CALL;
use super::cell::Cell;
use super::freshness::Freshness;
use super::kinds::Named;
use super::news::News;
use crate::{ClusterError, Result};

/// How long an object stays cached after the last pod that referred to it: another pod may follow.
const LINGER: Duration = Duration::from_secs(60);
/// How often an object that is not watched is read.
const PERIOD: Duration = Duration::from_secs(60);

/// The pods that refer to an object.
type Users = BTreeSet<PodUid>;

/// Objects of one kind.
pub(super) struct Shelf<K> {
    client: Client,
    freshness: Freshness,
    news: News,
    /// Never held over an await.
    kept: Guarded<BTreeMap<FullName, Kept<K>>>,
}

/// One object; none when there is none of its name.
type Seen<K> = Cell<Option<Arc<K>>>;

struct Kept<K> {
    seen: Seen<K>,
    users: watch::Sender<Users>,
    /// Keeps it up to date; ends with it.
    _keeper: AbortOnDropHandle<()>,
}

impl<K: Named> Shelf<K> {
    pub(super) fn new(client: Client, freshness: Freshness, news: News) -> Arc<Self> {
        Arc::new(Self { client, freshness, news, kept: Guarded::default() })
    }

    /// Those objects that exist, for a pod that refers to these and to no other.
    pub(super) async fn find(
        self: &Arc<Self>,
        names: BTreeSet<FullName>,
        user: &PodUid,
    ) -> Result<BTreeMap<FullName, Arc<K>>> {
        let wanted = self.claim(names, user);
        let answers = wanted.into_iter().map(|(name, seen)| async move {
            if self.freshness == Freshness::Get {
                self.read(&name, &seen).await;
            }
            let late =
                |limit| unavailable::<K>("list", &name, format!("no answer within {limit:?}"));
            Ok(seen.answer(late).await?.map(|object| (name, object)))
        });
        Ok(try_join_all(answers).await?.into_iter().flatten().collect())
    }

    /// A pod refers to nothing any more.
    pub(super) fn forget(&self, user: &PodUid) {
        self.kept.lock().values().for_each(|kept| kept.drop_user(user));
    }

    fn claim(
        self: &Arc<Self>,
        names: BTreeSet<FullName>,
        user: &PodUid,
    ) -> Vec<(FullName, Seen<K>)> {
        let mut kept = self.kept.lock();
        let others = kept.iter().filter(|(name, _)| !names.contains(name));
        others.for_each(|(_, other)| other.drop_user(user));
        let claim = |name: FullName| {
            let entry = kept.entry(name.clone()).or_insert_with(|| self.keep(name.clone()));
            entry.users.send_if_modified(|users| users.insert(user.clone()));
            (name, entry.seen.clone())
        };
        names.into_iter().map(claim).collect()
    }

    /// Begins to keep an object up to date.
    fn keep(self: &Arc<Self>, name: FullName) -> Kept<K> {
        let (seen, users) = (Cell::new(), watch::Sender::new(Users::new()));
        let keeper = Keeper { seen: seen.clone(), users: users.subscribe(), name };
        let shelf = Arc::downgrade(self);
        let task = async move {
            loop {
                // A cache that is gone has dropped its refreshers.
                let Some(strong) = shelf.upgrade() else { return };
                let (client, news, freshness) =
                    (strong.client.clone(), strong.news.clone(), strong.freshness);
                drop(strong);
                tokio::select! {
                    biased;
                    () = keeper.unused() => {}
                    () = keeper.attend(client, &news, freshness) => {}
                }
                if shelf.upgrade().is_none_or(|shelf| shelf.let_go(&keeper.name)) {
                    return;
                }
            }
        };
        Kept { seen, users, _keeper: AbortOnDropHandle::new(tokio::spawn(task)) }
    }

    /// Removes an object from the cache, unless a pod refers to it again.
    fn let_go(&self, name: &FullName) -> bool {
        let mut kept = self.kept.lock();
        let is_unused = kept.get(name).is_none_or(|entry| entry.users.borrow().is_empty());
        if is_unused {
            kept.remove(name);
        }
        is_unused
    }

    /// Reads an object once. A failure does not replace a known value.
    async fn read(&self, name: &FullName, seen: &Seen<K>) {
        if read(&self.client, name, seen).await {
            self.news.tell(&K::change(name.clone()));
        }
    }

    /// How many objects are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.lock().len()
    }
}

impl<K> Kept<K> {
    fn drop_user(&self, user: &PodUid) {
        self.users.send_if_modified(|users| users.remove(user));
    }
}

/// Keeps one object up to date.
struct Keeper<K> {
    name: FullName,
    seen: Seen<K>,
    users: watch::Receiver<Users>,
}

impl<K: Named> Keeper<K> {
    /// Ends when no pod has referred to the object for `LINGER`.
    async fn unused(&self) {
        let mut users = self.users.clone();
        loop {
            // The entry has been dropped.
            if users.wait_for(Users::is_empty).await.is_err() {
                return;
            }
            tokio::select! {
                biased;
                _ = users.wait_for(|users| !users.is_empty()) => {}
                () = sleep(LINGER) => return,
            }
        }
    }

    /// Keeps the object up to date; does not end.
    async fn attend(&self, client: Client, news: &News, freshness: Freshness) {
        match freshness {
            Freshness::Watch => self.watch(client, news).await,
            Freshness::Cache | Freshness::Get => self.poll(client, news).await,
        }
        // An immutable object needs no refresh.
        std::future::pending::<()>().await;
    }

    async fn watch(&self, client: Client, news: &News) {
        let api = K::api(client, &self.name.namespace);
        let fields = format!("metadata.name={}", self.name.name);
        let mut watch = Watch::new(api, fields, object::<K>(&self.name), Manner::CALM);
        loop {
            let heard = match watch.try_next().await {
                Ok(heard) => heard,
                Err(error) => {
                    let object = object::<K>(&self.name);
                    tracing::debug!(object, %error, "object watch failed, known object stays in use");
                    self.seen.fail(error);
                    continue;
                }
            };
            for heard in heard {
                let now = match heard {
                    watching::News::All(found) => found.into_iter().next().map(Named::bare),
                    watching::News::Changed(object) => Some(object.bare()),
                    watching::News::Gone(_) => None,
                };
                let is_final = now.as_ref().is_some_and(Named::is_immutable);
                if self.seen.learn(now.map(Arc::new)) {
                    news.tell(&K::change(self.name.clone()));
                }
                if is_final {
                    return;
                }
            }
        }
    }

    async fn poll(&self, client: Client, news: &News) {
        let mut failures = 0;
        loop {
            if read(&client, &self.name, &self.seen).await {
                news.tell(&K::change(self.name.clone()));
            }
            let wait = match self.seen.known() {
                Some(_) => PERIOD,
                None => {
                    failures += 1;
                    Waits::FOR_A_FIRST_ANSWER.after(failures)
                }
            };
            sleep(wait).await;
        }
    }
}

/// Reads an object; tells whether it changed.
async fn read<K: Named>(client: &Client, name: &FullName, seen: &Seen<K>) -> bool {
    let api = K::api(client.clone(), &name.namespace);
    match timeout(CALL, api.get_opt(&name.name)).await {
        Ok(Ok(found)) => return seen.learn(found.map(|found| Arc::new(found.bare()))),
        Ok(Err(error)) => seen.fail(failed("get", &object::<K>(name), &error)),
        Err(_) => seen.fail(unavailable::<K>("get", name, format!("no answer within {CALL:?}"))),
    }
    false
}

fn object<K: Named>(name: &FullName) -> String {
    match name.namespace.as_str() {
        "" => format!("{} {}", K::WORD, name.name),
        namespace => format!("{} {namespace}/{}", K::WORD, name.name),
    }
}

fn unavailable<K: Named>(call: &'static str, name: &FullName, why: String) -> ClusterError {
    ClusterError::Unavailable { call, object: object::<K>(name), why }
}
