//! Combinations, arms, defaults, files, and every error.

use super::*;
use model::unit::Bytes;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn job(name: &str, stacks: &[&str], options: &[&str]) -> JobDraft {
    JobDraft { name: name.to_owned(), stacks: words(stacks), options: words(options), ..JobDraft::default() }
}

fn draft(kernels: &[&str], jobs: Vec<JobDraft>) -> Draft {
    Draft { kernels: words(kernels), jobs, ..Draft::default() }
}

fn resolved(draft: &Draft) -> GuestPlan {
    draft.resolve(&Settings::default()).unwrap()
}

fn sweep(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: words(values) }
}

/// Each point: job, arm, kernel, stack, parameters, cell.
fn points(plan: &GuestPlan) -> Vec<String> {
    let cell = |point: &Point| {
        point.place.cell.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
    };
    let text = |point: &Point| {
        let Place { job, kernel, stack, parameters, .. } = &point.place;
        format!("{job} {} {kernel} {stack} '{parameters}' {}", point.arm, cell(point))
    };
    plan.points.iter().map(text).collect()
}

#[test]
fn one_job_on_one_kernel_has_the_defaults() {
    let plan = resolved(&draft(&["debian:6.1"], vec![job("a/b", &["tmpfs"], &["rw=randread"])]));
    assert_eq!((plan.title.as_str(), plan.compared.as_deref()), ("a/b on tmpfs: debian:6.1", None));
    assert_eq!(plan.arms, ["debian:6.1"]);
    assert_eq!((plan.replicates, plan.functions, plan.margin), (5, false, 0.01));
    let [point] = plan.points.as_slice() else { panic!("one point") };
    // 256 KiB in blocks of 4 KiB.
    assert_eq!((point.ios, point.warm_up_ios), (1000, 64));
    assert_eq!(point.phase.jobs.first().and_then(|job| job.target.size), Some(Size::Bytes(Bytes(256 << 10))));
    assert_eq!(plan.baseline_of(0), None);
    // A slash would put the job's file into a folder that does not exist.
    assert_eq!((point.place.job.as_str(), point.phase.jobs[0].name.as_str()), ("a/b", "a-b"));
}

#[test]
fn a_pass_over_the_file_warms_up_within_bounds() {
    let warm_up = |options: &[&str]| {
        let plan = resolved(&draft(&["k"], vec![job("a", &["tmpfs"], options)]));
        plan.points.first().map(|point| (point.warm_up_ios, point.ios))
    };
    assert_eq!(warm_up(&["rw=read", "bs=1k", "size=1m", "number_ios=77"]), Some((1024, 77)));
    assert_eq!(warm_up(&["rw=read", "bs=1k", "size=64m"]), Some((4096, 1000)));
    assert_eq!(warm_up(&["rw=read", "bs=64k", "size=64k"]), Some((64, 1000)));
    assert_eq!(warm_up(&["rw=read", "cpus_allowed=0-3"]), Some((64, 1000)), "a guest has one CPU");
}

#[test]
fn every_combination_is_a_point_and_kernels_are_compared_first() {
    let jobs = vec![job("a", &["tmpfs", "null_blk"], &["rw=read"]), job("b", &["nbd"], &["rw=write"])];
    let draft = Draft {
        parameters: words(&["", "nosmt"]),
        sweeps: vec![sweep("bs", &["1k", "2k"]), sweep("iodepth", &["1"])],
        ..draft(&["k1", "k2"], jobs)
    };
    let plan = resolved(&draft);
    assert_eq!(plan.compared.as_deref(), Some("kernel"));
    assert_eq!(plan.arms, ["k1", "k2"]);
    let points = points(&plan);
    assert_eq!(points.len(), 3 * 2 * 2 * 2);
    assert_eq!(
        points.get(..5),
        Some(
            &[
                "a 0 k1 tmpfs '' bs=1k,iodepth=1",
                "a 0 k1 tmpfs 'nosmt' bs=1k,iodepth=1",
                "a 1 k2 tmpfs '' bs=1k,iodepth=1",
                "a 1 k2 tmpfs 'nosmt' bs=1k,iodepth=1",
                "a 0 k1 tmpfs '' bs=2k,iodepth=1",
            ]
            .map(str::to_owned)[..]
        )
    );
    // Each candidate has the baseline that differs in its kernel only.
    assert_eq!((0..4).map(|number| plan.baseline_of(number)).collect::<Vec<_>>(), [None, None, Some(0), Some(1)]);
}

#[test]
fn the_user_says_what_is_compared() {
    let of = |compared: &str| {
        let draft = Draft {
            parameters: words(&["", "nosmt"]),
            sweeps: vec![sweep("sysctl:vm.x", &["0", "1"])],
            compared: Some(compared.to_owned()),
            ..draft(&["k1", "k2"], vec![job("a", &["tmpfs", "nbd"], &["rw=read"])])
        };
        let plan = resolved(&draft);
        let baselines = (0..plan.points.len()).filter(|number| plan.baseline_of(*number).is_some()).count();
        (plan.arms, baselines)
    };
    assert_eq!(of("kernel"), (words(&["k1", "k2"]), 8));
    assert_eq!(of("parameters"), (words(&["no parameters", "nosmt"]), 8));
    assert_eq!(of("stack"), (words(&["tmpfs", "nbd"]), 8));
    assert_eq!(of("sysctl:vm.x"), (words(&["x=0", "x=1"]), 8));
}

#[test]
fn a_job_without_the_compared_stack_has_no_baseline() {
    let jobs = vec![job("a", &["tmpfs", "nbd"], &["rw=read"]), job("b", &["nbd"], &["rw=read"])];
    let plan = resolved(&draft(&["k"], jobs));
    assert_eq!(plan.arms, ["tmpfs", "nbd"]);
    assert_eq!((0..3).map(|number| plan.baseline_of(number)).collect::<Vec<_>>(), [None, Some(0), None]);
}

#[test]
fn swept_sysctls_and_mount_options_join_those_of_the_job() {
    let draft = Draft {
        sysctls: words(&["vm.a = 1"]),
        sweeps: vec![sweep("sysctl:vm.b", &["2"]), sweep("mount", &["", "noac"]), sweep("bs", &["8k"])],
        ..draft(
            &["k"],
            vec![JobDraft { mount_options: Some("soft".to_owned()), ..job("a", &["nfs-tcp"], &["rw=read", "bs=4k"]) }],
        )
    };
    let plan = resolved(&draft);
    let mounts: Vec<_> = plan.points.iter().map(|point| point.mount_options.as_deref()).collect();
    assert_eq!(mounts, [Some("soft"), Some("soft,noac")]);
    let point = plan.points.first().unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(point.sysctls, [pair("vm.a", "1"), pair("vm.b", "2")]);
    let block = point.phase.jobs.first().map(|job| job.largest_block());
    assert_eq!(block, Some(Bytes(8192)), "a swept option overrides the job's");
}

#[test]
fn a_job_file_gives_the_jobs_name_and_its_variables() {
    let file = |text: &str| {
        let file = Some(("x.fio".to_owned(), text.to_owned()));
        draft(&["k"], vec![JobDraft { file, ..job("", &["tmpfs"], &["bs=2k"]) }])
    };
    let plan = file("[reads]\nrw=read\nsize=${SIZE}\n")
        .resolve(&Settings { environment: &|name| (name == "SIZE").then(|| "1m".to_owned()), ..Settings::default() })
        .unwrap();
    assert_eq!(plan.title, "x.fio on tmpfs: k");
    let point = plan.points.first().unwrap();
    assert_eq!((point.place.job.as_str(), point.warm_up_ios), ("reads", 512));
    let two = file("[a]\nrw=read\n[b]\nstonewall\nrw=read\n").resolve(&Settings::default()).unwrap_err();
    assert_eq!(two, "job 'x.fio': 2 phases, but a guest measures one; remove stonewall");
}

#[test]
fn every_error_says_what_and_how_to_mend_it() {
    let one = || draft(&["k"], vec![job("a", &["tmpfs"], &["rw=read"])]);
    let many = |name: &str| Axis { name: name.to_owned(), values: (0..400).map(|number| number.to_string()).collect() };
    let cases: [(Draft, &str); 14] = [
        (draft(&[], Vec::new()), "no kernel; give --kernel debian:6.1, a .deb, a vmlinuz, or the folder of a build"),
        (draft(&["k"], Vec::new()), "no job; give JOB.fio, or --rw=randread --bs=4k …"),
        (draft(&["k"], vec![job("a", &[], &[])]), "job 'a': no stack; `iotoll guest list` lists them"),
        (Draft { replicates: Some(0), ..one() }, "replicates: 0 is not within 1 to 20; give --replicates 5"),
        (Draft { replicates: Some(21), ..one() }, "replicates: 21 is not within 1 to 20; give --replicates 5"),
        (Draft { sweeps: vec![sweep("bs", &[])], ..one() }, "sweep 'bs': no values; give bs=VALUE,VALUE…"),
        (draft(&["k", "k"], one().jobs), "kernel 'k': given twice; remove one"),
        (Draft { sweeps: vec![sweep("bs", &["1k", "1k"])], ..one() }, "bs '1k': given twice; remove one"),
        (
            Draft { compared: Some("kernel".to_owned()), ..one() },
            "compare 'kernel': it has fewer than two values; give it two",
        ),
        (
            Draft { compared: Some("x".to_owned()), sweeps: vec![sweep("bs", &["1k", "2k"])], ..one() },
            "compare 'x': nothing with several values has this name; there are kernel, parameters, stack, bs",
        ),
        (Draft { sysctls: words(&["vm.x"]), ..one() }, "sysctl 'vm.x': no value; write NAME=VALUE"),
        (Draft { sweeps: vec![many("a"), many("b")], ..one() }, "160000 points are more than 1000; sweep fewer values"),
        (
            draft(&["k"], vec![job("a", &["tmpfs"], &["rw=read", "number_ios=10000001"])]),
            "job 'a': number_ios=10000001 is not within 1 to 10000000; give another number_ios",
        ),
        (draft(&["k"], vec![job("a", &["tmpfs"], &["rw=reed"])]), ""),
    ];
    for (draft, expected) in cases {
        let error = draft.resolve(&Settings::default()).unwrap_err();
        if expected.is_empty() {
            // The parser of jobs tells it.
            assert!(error.contains("reed") && !error.contains('\n'), "{error}");
        } else {
            assert_eq!(error, expected);
        }
    }
}

const WHOLE: &str = r#"
    kind = "guest"
    title = "Writes"
    kernels = ["debian:6.1", "debian:6.12"]
    parameters = ["", "mitigations=auto"]
    sysctls = ["vm.swappiness=0"]
    compare = "kernel"
    replicates = 3
    by_function = true
    margin = "0.5 %"
    [[job]]
    name = "a"
    stack = "tmpfs"
    options = ["rw=randwrite", "bs=1k"]
    [[job]]
    name = "b"
    stack = ["nfs-tcp", "nfs-rdma"]
    options = ["rw=read"]
    mount = "wsize=4096"
    [[sweep]]
    name = "bs"
    values = ["1k", "2k"]
    [[published]]
    what = "+9 %"
    source = "a mail"
"#;

#[test]
fn a_job_may_have_sweeps_of_its_own() {
    let own = JobDraft { sweeps: Some(vec![sweep("iodepth", &["1", "2"])]), ..job("b", &["tmpfs"], &["rw=read"]) };
    let jobs = vec![job("a", &["tmpfs"], &["rw=read"]), own];
    let plan = resolved(&Draft { sweeps: vec![sweep("bs", &["4k", "8k", "16k"])], ..draft(&["k"], jobs) });
    let cells: Vec<_> = plan.points.iter().flat_map(|point| point.place.cell.keys()).collect();
    assert_eq!(cells, ["bs", "bs", "bs", "iodepth", "iodepth"]);
}

#[test]
fn every_key_is_read() {
    let expected = Draft {
        title: "Writes".to_owned(),
        kernels: words(&["debian:6.1", "debian:6.12"]),
        parameters: words(&["", "mitigations=auto"]),
        jobs: vec![
            job("a", &["tmpfs"], &["rw=randwrite", "bs=1k"]),
            JobDraft {
                mount_options: Some("wsize=4096".to_owned()),
                ..job("b", &["nfs-tcp", "nfs-rdma"], &["rw=read"])
            },
        ],
        sweeps: vec![sweep("bs", &["1k", "2k"])],
        sysctls: words(&["vm.swappiness=0"]),
        compared: Some("kernel".to_owned()),
        replicates: Some(3),
        by_function: true,
        margin: Some(0.005),
        published: vec![Published { what: "+9 %".to_owned(), source: "a mail".to_owned() }],
    };
    assert_eq!(Draft::parse("x.toml", WHOLE).unwrap(), expected);
    let least = Draft::parse("x.toml", "kind = \"guest\"\nkernels = [\"debian:6.1\"]").unwrap();
    assert_eq!(least, draft(&["debian:6.1"], Vec::new()));
}

#[test]
fn an_error_names_the_file_the_line_and_the_mend() {
    for (text, error) in [
        ("kind = \"guest\"\n", "x.toml:1: missing field `kernels`"),
        (
            "kind = \"compare\"\nkernels = []",
            "x.toml: is an experiment of kind \"compare\"; run it with: iotoll compare x.toml",
        ),
        ("kind = \"guest\"\nkernels = []\nmargin = \"nan%\"", "x.toml:3: margin = \"nan%\": expected 0.01% to 100%"),
        ("kind = \"guest\"\nkernels = 6.1", "x.toml:2: invalid type: floating point `6.1`, expected a sequence"),
        ("kind = \"guest\"\nkernels = []\nreplicates = -1", "x.toml:3: invalid value: integer `-1`, expected u32"),
    ] {
        assert_eq!(Draft::parse("x.toml", text).unwrap_err(), error);
    }
    let job = "kind = \"guest\"\nkernels = []\n[[job]]\nname = \"a\"\noptions = []\nstack = ";
    let stack = Draft::parse("x.toml", &format!("{job}1")).unwrap_err();
    assert_eq!(stack, "x.toml:6: a name, or a list of names");
    let unknown = Draft::parse("x.toml", "kind = \"guest\"\nkernels = []\nkernel = 1").unwrap_err();
    assert!(unknown.starts_with("x.toml:3: unknown field `kernel`, expected one of `title`, "), "{unknown}");
    assert!(Draft::parse("x.toml", "kind = ").unwrap_err().starts_with("x.toml:1: "));
}
