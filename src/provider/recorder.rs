//! Telling the run's owner what is about to be made, what was made, and what is gone.

use tokio::sync::{mpsc, oneshot};

use crate::model::{ConfigurationId, Resource, ResourceState, UnixMs};

/// What the run's owner is told.
#[derive(Debug)]
pub enum RecorderMessage {
    /// Write this to the journal, sync it, then answer.
    Intend {
        resource: Resource,
        on_disk: oneshot::Sender<Result<(), String>>,
    },
    Made {
        resource: Resource,
    },
    Gone {
        id: String,
    },
    /// What is being done, in words.
    Step {
        configuration: Option<ConfigurationId>,
        text: String,
    },
}

/// Why an intent is not on record: then the thing is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the run's owner is gone: nothing more is made")]
    OwnerGone,
    #[error("the intent to make {id} could not be written to the journal: {why}")]
    NotOnDisk { id: String, why: String },
}

/// A handle to the run's owner, who alone writes the journal.
#[derive(Clone, Debug)]
pub struct Recorder {
    to: mpsc::UnboundedSender<RecorderMessage>,
}

impl Recorder {
    /// A recorder and the end where its messages arrive.
    #[must_use]
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<RecorderMessage>) {
        let (to, from) = mpsc::unbounded_channel();
        (Self { to }, from)
    }

    /// Returns once the intent is on disk.
    ///
    /// # Errors
    /// When it is not: then the thing must not be made.
    pub async fn intend(&self, resource: &Resource) -> Result<(), RecordError> {
        let (on_disk, written) = oneshot::channel();
        let message = RecorderMessage::Intend { resource: resource.clone(), on_disk };
        self.to.send(message).map_err(|_| RecordError::OwnerGone)?;
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(RecordError::NotOnDisk { id: resource.id.clone(), why }),
            Err(_) => Err(RecordError::OwnerGone),
        }
    }

    /// The thing exists. Removal does not depend on this reaching anyone.
    pub fn made(&self, resource: Resource) {
        let resource = Resource { state: ResourceState::Made, since: UnixMs::now(), ..resource };
        let _sent = self.to.send(RecorderMessage::Made { resource });
    }

    /// The thing exists no more.
    pub fn gone(&self, id: impl Into<String>) {
        let _sent = self.to.send(RecorderMessage::Gone { id: id.into() });
    }

    /// What is being done, for the screen.
    pub fn step(&self, configuration: Option<&ConfigurationId>, text: impl Into<String>) {
        let configuration = configuration.cloned();
        let _sent = self.to.send(RecorderMessage::Step { configuration, text: text.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ResourceKind;

    fn resource() -> Resource {
        Resource {
            kind: ResourceKind::Gate,
            id: "gate D1".into(),
            configuration: None,
            process: None,
            path: None,
            port: None,
            note: String::new(),
            state: ResourceState::Intended,
            since: UnixMs::now(),
        }
    }

    #[tokio::test]
    async fn nothing_is_made_without_its_intent_on_disk() {
        let (recorder, mut messages) = Recorder::channel();
        let waiting = tokio::spawn({
            let recorder = recorder.clone();
            async move { recorder.intend(&resource()).await }
        });
        let Some(RecorderMessage::Intend { on_disk, .. }) = messages.recv().await else {
            panic!("an intent");
        };
        assert!(!waiting.is_finished());
        on_disk.send(Err("disk full".into())).unwrap();
        let error = waiting.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("gate D1") && error.to_string().contains("disk full"));
        drop(messages);
        assert_eq!(recorder.intend(&resource()).await, Err(RecordError::OwnerGone));
    }
}
