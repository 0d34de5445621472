//! The command line of `erl`. Input: arguments, each ended by a zero; a first line goes to
//! `ERL_FLAGS`.

use purlin_runtime::options::erlexec::Environment;
use purlin_runtime::options::{CpuCounts, OtpInstall, parse_erl};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

pub fn run(data: &[u8]) {
    let otp = OtpInstall {
        root: "/otp".into(),
        release: 25,
        version: "25.2.3".into(),
        erts_version: "13.1.5".into(),
        bindir: "/otp/erts-13.1.5/bin".into(),
    };
    let cpus = CpuCounts {
        configured: 8,
        online: 8,
        available: 4,
        quota: Some(2),
    };
    let mut environment = Environment(vec![
        ("HOME".into(), "/nowhere".into()),
        ("PATH".into(), "/bin:/usr/bin".into()),
    ]);
    let (first, rest) = match data.iter().position(|&b| b == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (&data[..0], data),
    };
    if !first.is_empty() && !first.contains(&0) {
        environment.set("ERL_FLAGS", OsString::from_vec(first.to_vec()));
    }
    let mut argv = vec![OsString::from("erl")];
    argv.extend(
        rest.split(|&b| b == 0)
            .map(|a| OsString::from_vec(a.to_vec())),
    );
    // Files of arguments are read from where they say, and some of those never end.
    let reads_device = |a: &OsString| a.to_string_lossy().contains("/dev");
    if argv.iter().any(reads_device) || first.windows(4).any(|w| w == b"/dev") {
        return;
    }
    let _ = parse_erl(&argv, environment, &otp, cpus);
}
