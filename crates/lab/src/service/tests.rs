//! Services that are shell scripts are started, watched, and ended with their descendants.

use super::*;
use model::plan::service::{ServicePlan, resolve};
use std::path::Path;

/// A shell script that prints `go` when it is ready.
fn plan(script: &str) -> ServicePlan {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    ServicePlan { name: "s".to_owned(), command, ready: Some("go".to_owned()), ..ServicePlan::default() }
}

fn settings(plans: &[ServicePlan]) -> ServiceSettings {
    let addresses = Addresses::choose(plans.iter().map(|plan| plan.name.as_str())).unwrap();
    let services = resolve(plans, &[], &|name| addresses.of(name)).unwrap();
    ServiceSettings { services, addresses, program: "/proc/self/exe".into(), ..ServiceSettings::default() }
}

fn start(settings: &ServiceSettings, interruption: &Arc<Interruption>) -> Result<Services> {
    Services::start(settings, None, &WaitLimit::new(None, interruption.clone()), interruption, &mut |_| {})
}

fn refusal(plan: ServicePlan) -> String {
    let settings = settings(&[plan]);
    let folders = make_folders(&settings).unwrap();
    let error = start(&settings, &Arc::default()).unwrap_err().to_string();
    folders.unwrap().close().unwrap();
    assert!(!settings.addresses.folder.as_ref().unwrap().exists());
    error
}

#[test]
fn a_user_who_insists_does_not_wait_for_one_that_ignores_sigterm() {
    let settings = settings(&[plan("trap '' TERM; echo go; while :; do sleep 0.05; done")]);
    let folders = make_folders(&settings).unwrap();
    let interruption: Arc<Interruption> = Arc::default();
    let mut services = start(&settings, &interruption).unwrap();
    let begun = Instant::now();
    let told = interruption.clone();
    let user = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        (told.request(), told.request())
    });
    services.conclude(false).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    user.join().unwrap();
    folders.unwrap().close().unwrap();
}

#[test]
fn an_interruption_while_one_starts_or_is_filled_says_so() {
    let interrupted = |plan: ServicePlan| {
        let settings = settings(&[plan]);
        let folders = make_folders(&settings).unwrap();
        let interruption: Arc<Interruption> = Arc::default();
        let (told, begun) = (interruption.clone(), settings.addresses.folder.as_ref().unwrap().join("s/begun"));
        let user = std::thread::spawn(move || {
            while !begun.exists() {
                std::thread::sleep(POLL_INTERVAL);
            }
            told.request()
        });
        let error = start(&settings, &interruption).unwrap_err().to_string();
        user.join().unwrap();
        folders.unwrap().close().unwrap();
        error
    };
    let error = interrupted(plan("touch {dir}/begun; sleep 1000"));
    assert!(error.starts_with("interrupted while starting service 's': nothing was measured"), "{error}");
    let fill = Some("touch {dir}/begun; sleep 1000".to_owned());
    let error = interrupted(ServicePlan { fill, ..plan("echo go; sleep 1000") });
    assert!(error.starts_with("interrupted while filling service 's': nothing was measured"), "{error}");
}

#[test]
fn one_that_cannot_be_had_is_refused_with_its_last_words() {
    let error = refusal(ServicePlan { timeout_seconds: Some(0.3), ..plan("echo wait a bit; sleep 1000") });
    assert!(error.contains("service 's' is not ready after 0.3 s: no line of its output contains 'go'"), "{error}");
    assert!(error.ends_with("; its output ends: 'wait a bit'"), "{error}");
    let error = refusal(plan("echo forked; exit 0"));
    assert!(error.contains("exit status 0) and") || error.contains("has to stay in the foreground"), "{error}");
    let error = refusal(ServicePlan { fill: Some("echo full >&2; exit 4".to_owned()), ..plan("echo go; sleep 1000") });
    assert!(
        error.contains("filling service 's'") && error.contains("exit status: 4") && error.contains("full"),
        "{error}"
    );
    let missing = ServicePlan { command: vec!["/no/such/server".to_owned()], ..plan("") };
    assert!(refusal(missing).contains("service 's': /no/such/server: cannot be started"));
    let elsewhere = ServicePlan { cpus: vec![1023], ..plan("") };
    assert!(refusal(elsewhere).contains("service 's': CPU 1023 is not online"));
    let port = ServicePlan { ready: None, timeout_seconds: Some(0.3), ..plan(": {port}; sleep 1000") };
    assert!(refusal(port).contains("nothing listens on port "));
}

#[test]
fn a_port_or_socket_is_ready_when_it_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let ((output, _writer), us) = (output::Output::new(None).unwrap(), std::process::id());
    let is_ready = |ready| running::is_ready(&ready, us, &output);
    use model::plan::service::Ready;
    assert!(is_ready(Ready::Port(port)) && is_ready(Ready::Socket(path.display().to_string())));
    drop(listener);
    assert!(!is_ready(Ready::Port(port)) && !is_ready(Ready::Socket("/no/such/socket".to_owned())));
}

#[test]
fn each_service_has_its_own_port_reserved() {
    let addresses = Addresses::choose(["a", "b"].into_iter()).unwrap();
    let (a, b) = (addresses.of("a"), addresses.of("b"));
    assert_ne!(a.port, b.port);
    assert!(a.directory.ends_with("/a") && Path::new(&a.directory).parent() == Path::new(&b.directory).parent());
    assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a.port)).is_err());
    addresses.release(a.port);
    assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a.port)).is_ok());
    assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, b.port)).is_err());
    assert!(!Path::new(&a.directory).exists());
}
