//! The last step before the network: counts requests, and notes what an answer says beside its bytes.

use crate::statistics::{Counts, add};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

/// What is noted of one request; it travels with it.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    sent: AtomicBool,
    status: AtomicU16,
    wait: AtomicU64,
}

impl Trace {
    /// Whether the request was sent at all: without credentials it is not.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// The status of the answer, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    /// The seconds that the server wants to be left alone.
    pub(crate) fn wait(&self) -> Option<u64> {
        Some(self.wait.load(Ordering::Relaxed)).filter(|seconds| *seconds != 0)
    }
}

/// Makes clients that count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire(pub(crate) Arc<Counts>);

impl HttpConnector for Wire {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Fails if the program has chosen a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Counting { inner, counts: self.0.clone() }))
    }
}

#[derive(Debug)]
struct Counting {
    inner: HttpClient,
    counts: Arc<Counts>,
}

impl HttpService for Counting {
    fn call<'life, 'answer>(
        &'life self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'answer>>
    where
        'life: 'answer,
        Self: 'answer,
    {
        Box::pin(async move {
            let trace = request.extensions().get::<Arc<Trace>>().cloned();
            let Some(trace) = trace else { return self.inner.execute(request).await };
            trace.sent.store(true, Ordering::Relaxed);
            add(&self.counts.requests, 1);
            let answer = self.inner.execute(request).await?;
            trace.status.store(answer.status().as_u16(), Ordering::Relaxed);
            let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
            trace
                .wait
                .store(wait.and_then(|text| text.parse().ok()).unwrap_or(0), Ordering::Relaxed);
            Ok(answer)
        })
    }
}
