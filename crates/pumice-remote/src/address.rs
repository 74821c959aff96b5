//! Addresses of objects: what they look like, and where their credentials come from.

use crate::fault::Fault;
use crate::wire::Wire;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use std::io;
use std::sync::Arc;
use url::{Host, Url};

/// Whether a name is the address of an object, and not the path of a file.
///
/// ```
/// assert!(pumice_remote::is_url("s3://bucket/file.h5"));
/// assert!(!pumice_remote::is_url("folder/file.h5"));
/// ```
pub fn is_url(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| Service::named(scheme).is_some())
}

/// Who keeps the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    S3,
    Google,
    Azure,
    Http,
}

impl Service {
    fn named(scheme: &str) -> Option<Self> {
        Some(match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Self::S3,
            "gs" => Self::Google,
            "az" | "azure" | "abfs" | "abfss" | "adl" => Self::Azure,
            "http" | "https" => Self::Http,
            _ => return None,
        })
    }

    /// What to look at when the service refuses.
    pub(crate) fn credentials(self) -> &'static str {
        match self {
            Self::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL \
                 where they apply), or AWS_SKIP_SIGNATURE=true for a public bucket"
            }
            Self::Google => {
                "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT to the path of a key, or \
                 GOOGLE_SKIP_SIGNATURE=true for a public bucket"
            }
            Self::Azure => {
                "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or \
                 AZURE_SKIP_SIGNATURE=true for a public container"
            }
            Self::Http => "the server wants a user or a token, which can be part of the address",
        }
    }
}

/// An object, and the way to it.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) service: Service,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// The address without secrets.
    pub(crate) name: String,
}

impl Address {
    /// The object at an address; credentials come from the environment.
    pub(crate) fn parse(address: &str, wire: Wire, retry: RetryConfig) -> Result<Self, Fault> {
        let url = Url::parse(address).map_err(|error| {
            invalid(format!(
                "{address:?} is no address: {error}; addresses look like s3://bucket/file.h5"
            ))
        })?;
        let service = Service::named(url.scheme()).ok_or_else(|| {
            invalid(format!(
                "{address:?}: no service has addresses with {:?}; known are s3, gs, az, http and https",
                url.scheme()
            ))
        })?;
        let name = shown(&url);
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid(format!("{name}: the bucket or host is missing")));
        }
        let (objects, path): (Arc<dyn ObjectStore>, Path) = match service {
            Service::Http => (
                Arc::new(http(&url, wire, retry).map_err(|e| refused(&name, &e))?),
                Path::default(),
            ),
            _ => {
                let path = Path::from_url_path(url.path());
                let path = path.map_err(|error| invalid(format!("{name}: {error}")))?;
                if path.as_ref().is_empty() {
                    return Err(invalid(format!("{name}: the name of the object is missing")));
                }
                (cloud(service, &url, wire, retry).map_err(|error| refused(&name, &error))?, path)
            }
        };
        Ok(Self { service, objects, path, name })
    }
}

fn invalid(sentence: String) -> Fault {
    Fault::new(io::ErrorKind::InvalidInput, sentence)
}

fn refused(name: &str, error: &object_store::Error) -> Fault {
    invalid(format!("{name}: {error}"))
}

/// An address without user, password, query and fragment, where secrets may be.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for addresses that have no such parts.
    let _ = shown.set_password(None);
    if matches!(Service::named(url.scheme()), Some(Service::Http)) {
        let _ = shown.set_username("");
    }
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

/// Each request once: reading repeats them itself, so that they are counted.
pub(crate) fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// A stalled answer ends, a slow one does not.
fn patience(plain: bool) -> [(ClientConfigKey, &'static str); 4] {
    [
        (ClientConfigKey::AllowHttp, if plain { "true" } else { "false" }),
        (ClientConfigKey::ConnectTimeout, "10 seconds"),
        (ClientConfigKey::ReadTimeout, "30 seconds"),
        (ClientConfigKey::Timeout, "1 hour"),
    ]
}

fn http(
    url: &Url,
    wire: Wire,
    retry: RetryConfig,
) -> object_store::Result<object_store::http::HttpStore> {
    let mut url = url.clone();
    url.set_fragment(None);
    let mut builder = HttpBuilder::new().with_url(url);
    for (key, value) in patience(true) {
        builder = builder.with_config(key, value);
    }
    builder.with_retry(retry).with_http_connector(wire).build()
}

fn cloud(
    service: Service,
    url: &Url,
    wire: Wire,
    retry: RetryConfig,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let url = url.to_string();
    Ok(match service {
        Service::S3 => {
            let mut builder = AmazonS3Builder::from_env().with_url(url);
            let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            for (key, value) in patience(allows_http("AWS_ALLOW_HTTP", endpoint)) {
                builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
            }
            Arc::new(builder.with_retry(retry).with_http_connector(wire).build()?)
        }
        Service::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env().with_url(url);
            for (key, value) in patience(allows_http("GOOGLE_ALLOW_HTTP", None)) {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            Arc::new(builder.with_retry(retry).with_http_connector(wire).build()?)
        }
        Service::Azure | Service::Http => {
            let mut builder = MicrosoftAzureBuilder::from_env().with_url(url);
            let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
            for (key, value) in patience(allows_http("AZURE_ALLOW_HTTP", endpoint)) {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            Arc::new(builder.with_retry(retry).with_http_connector(wire).build()?)
        }
    })
}

/// Whether requests may go out unencrypted: to this machine, or because the environment says so.
fn allows_http(variable: &str, endpoint: Option<String>) -> bool {
    let local = endpoint.and_then(|endpoint| Url::parse(&endpoint).ok()).is_some_and(|endpoint| {
        match endpoint.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
    });
    let asked =
        std::env::var(variable).is_ok_and(|value| matches!(value.as_str(), "1" | "true" | "TRUE"));
    local || asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let url = Url::parse("https://me:secret@host/a.h5?X-Amz-Signature=1#x").unwrap();
        assert_eq!(shown(&url), "https://host/a.h5");
        let url = Url::parse("abfs://container@account.dfs.core.windows.net/a.h5").unwrap();
        assert_eq!(shown(&url), "abfs://container@account.dfs.core.windows.net/a.h5");
    }

    #[test]
    fn addresses_that_are_none_say_so() {
        for (address, part) in [
            ("ftp://a/b", "no service"),
            ("nothing", "is no address"),
            ("s3://", "is missing"),
            ("s3://bucket", "name of the object is missing"),
        ] {
            let error = Address::parse(address, Wire::default(), once()).unwrap_err().to_string();
            assert!(error.contains(part), "{address}: {error}");
        }
    }

    #[test]
    fn unencrypted_requests_stay_on_this_machine() {
        let allows = |endpoint: &str| allows_http("PUMICE_NO_SUCH", Some(endpoint.into()));
        assert!(
            allows("http://127.0.0.1:9000")
                && allows("http://[::1]:1")
                && allows("http://localhost:1")
        );
        assert!(!allows("http://10.0.0.1:9000") && !allows("http://example.org"));
    }
}
