use super::*;

#[test]
fn wrong_bytes_say_more_than_a_lost_peer() {
    let mut heard = Reported::default();
    heard.failed(0, "rank 1 failed".to_owned(), 2);
    heard.failed(1, "wrong bytes".to_owned(), 3);
    heard.failed(2, "rank 1 failed".to_owned(), 2);
    assert_eq!(heard.failure, Some((1, "wrong bytes".to_owned(), 3)));
    let error = heard.result().unwrap_err();
    assert_eq!(error.to_string(), "rank 1: wrong bytes");
    assert_eq!(error.exit_status(), ExitStatus::Invalid);
}
