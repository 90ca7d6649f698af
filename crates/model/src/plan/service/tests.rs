//! Services are resolved at made-up addresses, and texts refer to them.

use super::*;
use proptest::prelude::*;

fn plan(text: &str) -> ServicePlan {
    ServicePlan::parse(text).unwrap()
}

fn address(name: &str) -> Address {
    let port = if name == "b" { 2222 } else { 1111 };
    Address { port, directory: format!("/tmp/x/{name}") }
}

fn resolved(plans: &[ServicePlan]) -> Result<Vec<Service>, String> {
    resolve(plans, &["depth".to_owned()], &address)
}

#[test]
fn a_service_knows_its_port_socket_and_folder() {
    let [tcp, unix, file] = [
        "a=iotoll serve --listen 127.0.0.1:{port} --backend 'file:{dir}/my data'",
        "b=nbdkit -f -U {socket} memory 1g",
        "c=sh -c 'echo ${HOME} {a.port} {b.socket} {a.dir}; awk \"{ print }\"'",
    ]
    .map(plan);
    let file = ServicePlan { ready: Some("go".to_owned()), uri: Some("udp://localhost:{port}".to_owned()), ..file };
    let fill = Some("dd of={dir}/x; fill {uri} {b.uri}".to_owned());
    let found = resolved(&[ServicePlan { fill, ..tcp }, unix, file]).unwrap();
    let [a, b, c] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(a.command, ["iotoll", "serve", "--listen", "127.0.0.1:1111", "--backend", "file:/tmp/x/a/my data"]);
    assert_eq!((a.uri.as_deref(), &a.ready), (Some("nbd://127.0.0.1:1111"), &Ready::Port(1111)));
    assert_eq!(
        a.fill.as_deref(),
        Some("dd of=/tmp/x/a/x; fill nbd://127.0.0.1:1111 'nbd+unix:///?socket=/tmp/x/b/socket'")
    );
    assert_eq!(b.command.get(3).map(String::as_str), Some("/tmp/x/b/socket"));
    assert_eq!(b.ready, Ready::Socket("/tmp/x/b/socket".to_owned()));
    assert_eq!(c.command[2], "echo ${HOME} 1111 /tmp/x/b/socket /tmp/x/a; awk \"{ print }\"");
    assert_eq!((c.uri.as_deref(), &c.ready), (Some("udp://localhost:1111"), &Ready::Says("go".to_owned())));
    assert_eq!(escaped("/tmp/a b?c"), "/tmp/a%20b%3Fc");
}

#[test]
fn what_is_no_service_is_refused_in_words() {
    let refused = |plans: &[ServicePlan]| resolved(plans).unwrap_err();
    let cases = [
        ("a=s {prot}", "service 'a': unknown {prot}; a service knows {port}"),
        ("a=s {port} {depth}", "{depth} is swept"),
        ("a=s {port} {c.uri}", "no service is called 'c'; there is a"),
        ("a=s {port} {a.urii}", "unknown {a.urii}; a service has uri, port, socket, dir"),
        ("a=s --listen 127.0.0.1:10809", "nothing says when it is ready"),
    ];
    for (text, expected) in cases {
        let refusal = refused(&[plan(text)]);
        assert!(refusal.contains(expected) && refusal.contains('a') && !refusal.contains('\n'), "{refusal}");
    }
    assert!(refused(&[plan("a=s {port}"), plan("a=t {port}")]).contains("two services are called 'a'"));
    let blank = ServicePlan { fill: Some(" ".to_owned()), ..plan("a=s {port}") };
    assert!(refused(&[blank]).contains("fill is empty"));
    let uri = ServicePlan { uri: Some("nbd://{prot}".to_owned()), ..plan("a=s {port}") };
    assert!(refused(&[uri]).contains("uri: unknown {prot}"));
    let silent = ServicePlan { ready: Some("go".to_owned()), ..plan("a=s") };
    let user = plan("b=s {port} {a.uri}");
    assert!(refused(&[silent, user]).contains("service 'a' has none"));
    for text in ["a", "=s", "a b=s", "1=s", "a=", "a='s", "a=''"] {
        assert!(ServicePlan::parse(text).is_err(), "{text}");
    }
}

#[test]
fn texts_refer_to_services_and_keep_what_is_swept() {
    let services = resolved(&[plan("a=s {port}"), ServicePlan { arm: Some("one".to_owned()), ..plan("b=s {port}") }]);
    let (services, swept) = (services.unwrap(), ["depth".to_owned(), "port".to_owned()]);
    let names = |arm| Names { services: &services, swept: &swept, arm };
    let all = "--uri={a.uri} {a.port} {depth} {port} {else} {x.y} ${a.uri} {b.dir}";
    let filled = "--uri=nbd://127.0.0.1:1111 1111 {depth} {port} {else} {x.y} ${a.uri} /tmp/x/b";
    assert_eq!(names(Some("one")).fill_in(all), Ok(filled.to_owned()));
    assert_eq!(names(None).fill_in(all), Ok(filled.to_owned()));
    let refused = |arm, text: &str| names(arm).fill_in(text).unwrap_err();
    assert!(refused(Some("two"), all).contains("'b' belongs to arm 'one', and arm 'two' uses it"));
    assert_eq!(refused(None, "{socket}"), "{socket}: of which service? Write {a.socket}");
    assert!(refused(None, "{srever.uri}").contains("no service is called 'srever'; there is a, b"));
    assert!(refused(None, "{a.url}").contains("unknown {a.url}"));
    let without = Names { services: &[], swept: &[], arm: None };
    assert_eq!(without.fill_in("{port} {dir} {x.y}"), Ok("{port} {dir} {x.y}".to_owned()));
    assert!(without.fill_in("{server.uri}").unwrap_err().contains("there are no services"));
}

#[test]
fn two_measurements_say_the_same_of_a_service_at_two_addresses() {
    let at = |port| {
        let address = |_: &str| Address { port, directory: format!("/tmp/{port}") };
        let services = resolve(&[plan("a=s {port}")], &[], &address).unwrap();
        let names = Names { services: &services, swept: &[], arm: None };
        named_in(&services, &names.fill_in("fio --uri={a.uri}/x {a.dir}/f").unwrap())
    };
    assert_eq!((at(1111), at(2222)), ("fio --uri={a.uri}/x {a.dir}/f".to_owned(), at(1111)));
}

#[test]
fn words_in_braces_are_replaced_and_other_braces_stay() {
    let shout = |text: &str| fill_in(text, |word| Ok((word != "stays").then(|| word.to_uppercase()))).unwrap();
    for (text, filled) in [
        ("a {b} c{d.e}f", "a B cD.Ef"),
        ("{a}{b}", "AB"),
        ("{stays} {a}", "{stays} A"),
        ("${HOME} awk '{ print }' {1..3} {} {", "${HOME} awk '{ print }' {1..3} {} {"),
        ("{{a}}", "{A}"),
        ("{\"json\": {a}}", "{\"json\": A}"),
        ("übel {a} ü", "übel A ü"),
    ] {
        assert_eq!(shout(text), filled);
    }
    assert_eq!(fill_in("x {a}", |word| Err(format!("no {word}"))), Err("no a".to_owned()));
}

proptest! {
    #[test]
    fn a_text_of_which_nothing_is_known_stays_as_it_is(text in ".{0,80}|[{}$a.]{0,20}") {
        prop_assert_eq!(fill_in(&text, |_| Ok(None)).unwrap(), text);
    }

    #[test]
    fn each_word_is_asked_for_once(words in proptest::collection::vec("[a-z][a-z.]{0,5}", 0..6)) {
        let text: String = words.iter().map(|word| format!("-{{{word}}}")).collect();
        let filled = fill_in(&text, |word| Ok(Some(word.to_owned()))).unwrap();
        prop_assert_eq!(filled, words.iter().map(|word| format!("-{word}")).collect::<String>());
    }
}
