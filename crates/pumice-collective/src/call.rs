//! The frame of a collective call: what ranks hand in, and whether all could do their part.

use crate::file::{Inner, State};
use crate::wire::{In, Out};
use crate::{CollectiveError, Result};

/// What ranks do together; all must do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Create,
    OpenDataset,
    Change,
    Write(usize),
    Erase(usize),
    Read(usize),
    Resize(usize),
    Flush,
    Close,
    /// The outcome of the call before.
    Done,
}

impl Call {
    fn code(self) -> (u8, usize) {
        match self {
            Self::Open => (0, 0),
            Self::Create => (1, 0),
            Self::OpenDataset => (2, 0),
            Self::Change => (3, 0),
            Self::Write(dataset) => (4, dataset),
            Self::Erase(dataset) => (5, dataset),
            Self::Read(dataset) => (6, dataset),
            Self::Resize(dataset) => (7, dataset),
            Self::Flush => (8, 0),
            Self::Close => (9, 0),
            Self::Done => (10, 0),
        }
    }
}

impl Inner {
    /// What each rank hands in, if all make this call and none has an error.
    pub(crate) fn gather(
        &self,
        state: &mut State,
        call: Call,
        own: Result<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        state.check()?;
        let (code, dataset) = call.code();
        let mut out = Out::default();
        out.byte(code);
        out.number(dataset as u64);
        match &own {
            Ok(bytes) => {
                out.byte(1);
                out.bytes(bytes);
            }
            Err(error) => {
                out.byte(0);
                out.bytes(error.to_string().as_bytes());
            }
        }
        let all = self.fatal(state, self.comm.all_gather(&out.0).map_err(CollectiveError::from))?;
        let taken = self.take(call, &all);
        // One's own error says more than what others make of it.
        match (self.fatal(state, taken), own) {
            (_, Err(error)) => Err(error),
            (taken, Ok(_)) => taken?,
        }
    }

    /// What ranks have handed in; the inner error is that of one that could not.
    fn take(&self, call: Call, all: &[Vec<u8>]) -> Result<Result<Vec<Vec<u8>>>> {
        let (code, dataset) = call.code();
        let (mut payloads, mut failed) = (Vec::with_capacity(all.len()), None);
        for (rank, message) in all.iter().enumerate() {
            let mut message = In(message);
            if (message.byte()?, message.number()?) != (code, dataset as u64) {
                let own = self.comm.rank();
                let what =
                    format!("rank {rank} makes another call than rank {own}, which makes {call:?}");
                return Err(CollectiveError::Disagree(what));
            }
            match message.byte()? {
                1 => payloads.push(message.bytes()?.to_vec()),
                _ => {
                    let reason = message.text()?;
                    failed.get_or_insert(CollectiveError::Elsewhere { rank, reason });
                }
            }
        }
        Ok(failed.map_or(Ok(payloads), Err))
    }

    /// Whether all ranks could do their part of a call.
    pub(crate) fn agree<T>(&self, state: &mut State, own: Result<T>) -> Result<T> {
        let (value, told) = match own {
            Ok(value) => (Some(value), Ok(Vec::new())),
            Err(error) => (None, Err(error)),
        };
        self.gather(state, Call::Done, told)?;
        value.ok_or_else(|| CollectiveError::Broken("a rank has neither outcome nor error".into()))
    }

    /// [`agree`](Self::agree), where a failure leaves nothing that could be gone on with.
    pub(crate) fn agree_or_end<T>(&self, state: &mut State, own: Result<T>) -> Result<T> {
        let agreed = self.agree(state, own);
        self.ending(state, agreed)
    }

    /// Ends everything if a call has failed so that ranks cannot go on together.
    pub(crate) fn fatal<T>(&self, state: &mut State, result: Result<T>) -> Result<T> {
        match result {
            Err(error) if error.is_fatal() => self.ending(state, Err(error)),
            result => result,
        }
    }

    pub(crate) fn ending<T>(&self, state: &mut State, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.end(state, &error.to_string());
        }
        result
    }

    /// Nothing more is written, here or elsewhere.
    pub(crate) fn end(&self, state: &mut State, reason: &str) {
        if state.broken.is_none() {
            state.broken = Some(reason.to_owned());
            self.shut();
            self.comm.abort(reason);
        }
    }
}
