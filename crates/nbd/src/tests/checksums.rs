//! Checksums behind payloads: an end that receives a mismatch reports it.

use super::*;
use crate::filters::{CHECKSUM_BYTES, Checksum};

fn summed() -> Tuning {
    Tuning { checksums: true, ..Tuning::default() }
}

fn sum(data: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = Checksum::default();
    sum.add(data);
    sum.bytes()
}

/// A hand-written client that requests checksums.
fn agreed_on_checksums(served: &Served) -> UnixStream {
    let mut stream = served.raw();
    stream.read_exact(&mut [0; 18]).unwrap();
    let mut hello = 3_u32.to_be_bytes().to_vec();
    for number in [option::CHECKSUMS, option::EXPORT_NAME] {
        hello.extend(option_bytes(number, &[]));
    }
    stream.write_all(&hello).unwrap();
    let mut replies = [0; 20 + 10];
    stream.read_exact(&mut replies).unwrap();
    assert_eq!(replies[12..16], 1_u32.to_be_bytes(), "accepted");
    stream
}

#[test]
fn a_write_with_a_wrong_checksum_gets_eio_and_the_next_is_served() {
    let served = Served::tuned(summed(), true);
    let mut stream = agreed_on_checksums(&served);
    for length in [1_usize, 5000, 300_000] {
        let data = vec![9; length];
        for (sum, expected) in [(sum(&data[1..]), WireError::EIO.number()), (sum(&data), 0)] {
            stream.write_all(&write(0, &data)).unwrap();
            // The checksum may arrive late and in parts.
            stream.write_all(&sum[..1]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(reply(&mut stream, &sum[1..]), expected, "{length}");
        }
        assert_eq!(reply(&mut stream, &ask(Command::Read, 0, 0, length as u32)), 0);
        let mut found = vec![0; length + CHECKSUM_BYTES];
        stream.read_exact(&mut found).unwrap();
        assert!(found == [&data[..], &sum(&data)].concat(), "{length}");
    }
    // An error has no payload and so no checksum; a refused write's payload is skipped with its checksum.
    assert_eq!(reply(&mut stream, &ask(Command::Read, 0, SIZE, 1)), WireError::EINVAL.number());
    let refused = [&write(SIZE, &[1])[..], &sum(&[1])].concat();
    assert_eq!(reply(&mut stream, &refused), WireError::ENOSPC.number());
    drop(stream);
    assert_eq!(served.ended().0.errors, 5);
}

#[test]
fn clients_that_do_not_ask_get_no_checksums() {
    let served = Served::tuned(summed(), true);
    let mut stream = agreed(&served);
    stream.write_all(&[&write(0, b"abc")[..], &ask(Command::Read, 0, 0, 3)].concat()).unwrap();
    assert_eq!((error(&mut stream), error(&mut stream)), (0, 0));
    let mut found = [0; 3];
    stream.read_exact(&mut found).unwrap();
    assert_eq!(&found, b"abc");
}

#[test]
fn a_client_that_wants_checksums_refuses_a_server_without() {
    let served = Served::memory();
    let error = tuned_client(&served.uri, 1, 512, summed()).unwrap_err().to_string();
    assert!(error.contains("--path-crc on"), "{error}");
}

#[test]
fn a_reply_with_a_wrong_checksum_ends_the_connection() {
    for right in [true, false] {
        let (_folder, listener, uri) = by_hand();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = agreeing_on(&listener, true);
                let mut request = [0; REQUEST_BYTES];
                stream.read_exact(&mut request).unwrap();
                let request = Request::decode(&request).unwrap();
                let data = vec![3; request.length as usize];
                let sum = if right { sum(&data) } else { sum(&data[1..]) };
                stream.write_all(&[&simple_reply(request.cookie, None)[..], &data, &sum].concat()).unwrap();
                // Until the client disconnects.
                let _ = stream.read(&mut [0]);
            });
            let mut client = tuned_client(&uri, 1, 8192, summed()).unwrap();
            client.stage(0, Ask::Read, 0, 8192).unwrap();
            let mut done = 0;
            let mut outcome = client.submit(|_| {});
            while outcome.is_ok() && client.in_flight() > 0 {
                outcome = client.wait(|reply| done += u32::from(reply.error.is_none()));
            }
            assert_eq!((outcome.is_ok(), done), (right, u32::from(right)), "{outcome:?}");
        });
    }
}
