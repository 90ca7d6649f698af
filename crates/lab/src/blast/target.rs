//! Where packets may be sent.

use crate::error::{Error, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Which targets are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Loopback, link-local and private addresses.
    Near,
    /// All: the user says that the target is theirs.
    Any,
}

/// Finds the address of a host.
///
/// # Errors
/// Refused when it has none, or is beyond what is allowed.
pub fn resolve(host: &str, port: u16, allowed: Allowed) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().map(|mut addresses| addresses.next());
    let address = match found {
        Ok(Some(address)) => address,
        Ok(None) => return Err(Error::Refused(format!("'{host}': the name has no address; give an IP address"))),
        Err(error) => {
            return Err(Error::Refused(format!(
                "'{host}': cannot be resolved ({error}); give a host name or an IP address"
            )));
        }
    };
    if allowed == Allowed::Near && !is_near(address.ip()) {
        return Err(Error::Refused(format!(
            "{}: is a public address, and a flood of packets disrupts hosts and networks that do not expect it; if both are yours, \
             add --target-is-mine",
            address.ip()
        )));
    }
    Ok(address)
}

/// Loopback, link-local or private (RFC 1918, RFC 4193), whose packets no router passes to the internet.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local() || address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_is_refused_unless_the_user_owns_the_target() {
        for near in ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.1.1", "::1", "fe80::1", "fd00::1"] {
            assert_eq!(resolve(near, 9, Allowed::Near).unwrap().port(), 9, "{near}");
        }
        for far in
            ["8.8.8.8", "2001:4860::1", "172.32.0.1", "::ffff:8.8.8.8", "0.0.0.0", "255.255.255.255", "224.0.0.1"]
        {
            let error = resolve(far, 9, Allowed::Near).unwrap_err().to_string();
            assert!(error.contains("--target-is-mine"), "{error}");
            assert!(resolve(far, 9, Allowed::Any).is_ok());
        }
        assert!(
            resolve("no.such.host.invalid", 9, Allowed::Any).unwrap_err().to_string().contains("cannot be resolved")
        );
    }
}
